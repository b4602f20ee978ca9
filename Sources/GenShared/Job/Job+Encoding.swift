extension Job {
    /// The message's body, version 1.
    public var body: [UInt8] {
        var writer = JSONWriter(capacity: 512 + input.text.utf8.count)
        writer.beginObject()
        writer.member("v", Self.version)
        writer.member("id", id.rawValue)
        writer.member("kind", kind.rawValue)
        writer.key("input")
        input.write(to: &writer)
        writer.key("options")
        options.write(to: &writer)
        writer.member("lane", lane.rawValue)
        writer.member("pool", pool)
        writer.member("created_at", ifPresent: createdAt?.description)
        writer.member("expires_at", ifPresent: expiresAt?.description)
        writer.member("timeout_s", timeoutSeconds)
        writer.member("tenant", tenant)
        writer.member("metadata", .object(metadata))
        writer.endObject()
        return writer.bytes
    }
}

extension JobInput {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("text", text)
        writer.member("style", ifPresent: style)
        if !messages.isEmpty {
            writer.key("messages")
            writer.beginArray()
            for message in messages {
                writer.beginObject()
                writer.member("role", message.role.rawValue)
                writer.member("content", message.content)
                writer.endObject()
            }
            writer.endArray()
        }
        if let schema { writer.member("schema", schema) }
        if let image {
            writer.member("width", image.width)
            writer.member("height", image.height)
            writer.member("guidance_scale", ifPresent: image.guidanceScale)
            writer.member("num_inference_steps", image.inferenceSteps)
            writer.member("seed", ifPresent: image.seed)
            writer.member("count", image.count)
        }
        writer.endObject()
    }
}

extension GenerationOptions {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("temperature", ifPresent: temperature)
        writer.member("top_p", ifPresent: topP)
        writer.member("min_p", ifPresent: minP)
        writer.member("repeat_penalty", ifPresent: repeatPenalty)
        writer.member("max_tokens", ifPresent: maxTokens)
        writer.member("seed", ifPresent: seed)
        if !stop.isEmpty { writer.member("stop", .array(stop.map(JSONValue.string))) }
        writer.member("model", ifPresent: model)
        writer.member("thinking", ifPresent: thinking)
        writer.endObject()
    }
}
