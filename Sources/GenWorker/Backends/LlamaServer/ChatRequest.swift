import GenShared

/// The body of a streamed chat completion as llama-server understands it.
enum ChatRequest {
    static func body(_ request: GenerationRequest, model: String?) -> [UInt8] {
        var writer = JSONWriter(capacity: 1024)
        writer.beginObject()
        writer.key("messages")
        writer.beginArray()
        for message in request.messages {
            writer.beginObject()
            writer.member("role", message.role.rawValue)
            writer.member("content", message.content)
            writer.endObject()
        }
        writer.endArray()
        writer.member("stream", .bool(true))
        writer.member("stream_options", .object(["include_usage": .bool(true)]))
        // Early events while the prompt is read, which also tell its length.
        writer.member("return_progress", .bool(true))
        write(request.options, model, to: &writer)
        if let schema = request.schema {
            // The one form that llama-server really enforces.
            writer.member(
                "response_format",
                .object([
                    "type": .string("json_schema"),
                    "json_schema": .object(["name": .string("result"), "schema": schema]),
                ]))
        }
        writer.endObject()
        return writer.bytes
    }

    private static func write(_ options: GenerationOptions, _ model: String?, to writer: inout JSONWriter) {
        writer.member("model", ifPresent: options.model ?? model)
        writer.member("temperature", ifPresent: options.temperature)
        writer.member("top_p", ifPresent: options.topP)
        writer.member("min_p", ifPresent: options.minP)
        writer.member("repeat_penalty", ifPresent: options.repeatPenalty)
        writer.member("max_tokens", ifPresent: options.maxTokens)
        writer.member("seed", ifPresent: options.seed)
        if !options.stop.isEmpty { writer.member("stop", .array(options.stop.map(JSONValue.string))) }
        if let thinking = options.thinking {
            writer.member("chat_template_kwargs", .object(["enable_thinking": .bool(thinking)]))
        }
    }
}
