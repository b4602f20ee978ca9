import Foundation
import GenShared
import Testing

@testable import GenWorker

@Suite("Worker configuration")
struct WorkerConfigurationTests {
    /// Loads a text as a file of its own.
    private func load(_ text: String, environment: [String: String] = [:]) throws -> WorkerConfiguration {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString).json5"
        try Data(text.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }  // A temporary file: no harm if it stays.
        return try WorkerConfiguration.load(file: path, environment: environment)
    }

    private func message(_ text: String, environment: [String: String] = [:]) throws -> String {
        do {
            _ = try load(text, environment: environment)
            return "accepted"
        } catch let error as ConfigurationError { return error.description }
    }

    @Test("a full configuration is read with comments and all its parts")
    func whole() throws {
        let configuration = try load(
            """
            { // where the servers are
              amqp_url: 'amqp://u:p@rabbit/v', redis_url: 'redis://store:7000/3', drain: '5s', limits: {max_tokens: 99},
              timers: { first_event: '3s', gap: '250ms' },
              backends: {
                llama: { type: 'llama-server', model: '/m.gguf', parallel: 2, context: 4096, threads: 3, arguments: ['-fa'] },
                far: { type: 'llama-server', url: 'http://h:8080/' },
                echo: { type: 'echo', chunk_size: 7, delay: '1s', times: 2, failure: 'middle', parallel: 9 },
              },
              pools: {
                text: { backends: ['llama', 'far'], slots: 2 },
                trial: { backends: ['echo'], kinds: ['slogan'], slots: 8, batch_min_slots: 8 },
              },
              templates: { slogan: { user: 'S {text}', options: { temperature: 0.1 } } },
            }
            """)
        #expect(configuration.servers.amqp.place == "rabbit:5672" && configuration.servers.redis.database == 3)
        #expect(configuration.drain == .seconds(5) && configuration.limits.maxTokens == 99)
        #expect(configuration.timers == ExecutionTimers(firstEvent: .seconds(3), gap: .milliseconds(250)))
        #expect(configuration.pools.map(\.name) == ["text", "trial"])
        #expect(configuration.pools[0].kinds == [.slogan, .rewrite, .reply] && configuration.pools[0].slots == 2)
        #expect(configuration.pools[1].batchMinSlots == 8 && configuration.pools[1].kinds == [.slogan])
        #expect(configuration.backends.map(\.name) == ["echo", "far", "llama"])
        guard case .echo(let echo) = configuration.backends[0].backend,
            case .llamaServer(.address(let url, nil, 4, _)) = configuration.backends[1].backend,
            case .llamaServer(.supervised(let llama)) = configuration.backends[2].backend
        else {
            Issue.record("\(configuration.backends)")
            return
        }
        #expect(echo.chunkSize == 7 && echo.times == 2 && echo.failure == .middle && echo.capacity == 9)
        #expect(url == "http://h:8080" && llama.parallel == 2 && llama.context == 4096 && llama.arguments == ["-fa"])
        let slogan = try #require(configuration.templates[.slogan])
        #expect(slogan.user == "S {text}" && slogan.options.temperature == 0.1 && slogan.options.maxTokens == 48)
        #expect(configuration.templates[.reply] == PromptTemplate.defaults[.reply])
    }

    @Test("with nothing but a model it serves the text pool on llama.cpp from the path")
    func defaults() throws {
        let configuration = try load("{}", environment: ["GEN_MODEL": "/m.gguf", "GEN_LLAMA_SERVER": "/bin/ls"])
        guard case .llamaServer(.supervised(let settings)) = configuration.backends[0].backend else {
            Issue.record("\(configuration.backends)")
            return
        }
        #expect(settings.model == "/m.gguf" && settings.command == "/bin/ls")
        #expect(configuration.pools.map(\.name) == ["text"] && configuration.pools[0].backends == ["local"])
        #expect(configuration.pools[0].slots == 4 && configuration.pools[0].batchMinSlots == 0)
        #expect(configuration.drain == .seconds(25))
    }

    private static let echo = "backends: { e: { type: 'echo' } }"

    @Test(
        "B11, B27: what is wrong is refused with its place",
        arguments: [
            ("{}", "no backend is configured"), ("{ pols: {} }", "pols is unknown"),
            ("{ backends: { b: {} } }", "backends.b.type is missing"),
            ("{ backends: { b: { type: 'gpt' } } }", "backends.b.type is \"gpt\""),
            ("{ backends: { b: { type: 'echo', chunksize: 1 } } }", "backends.b.chunksize is unknown"),
            ("{ backends: { b: { type: 'echo', chunk_size: 0 } } }", "backends.b.chunk_size: is 0"),
            ("{ backends: { b: { type: 'echo', failure: 'often' } } }", "backends.b.failure is not one of before"),
            ("{ backends: { b: { type: 'llama-server' } } }", "backends.b.model is missing"),
            ("{ backends: { b: { type: 'llama-server', url: 'ftp://h' } } }", "backends.b.url must begin with"),
            ("{ backends: { b: { type: 'llama-server', model: '-x' } } }", "must not begin with -"),
            ("{ backends: { b: { type: 'llama-server', model: 'm', context: 1 } } }", "backends.b.context: is 1"),
            ("{ backends: { b: { type: 'llama-server', url: 'http://' } } }", "backends.b.url must begin with"),
            ("{ backends: { b: { type: 'llama-server', url: 'http://a b' } } }", "backends.b.url must begin with"),
            ("{ backends: { b: { type: 'llama-server', url: 'http://h\\n' } } }", "backends.b.url must begin with"),
            (
                "{ backends: { b: { type: 'llama-server', url: 'http://u:p@h' } } }",
                "backends.b.url must hold no password"
            ),
            ("{ backends: { b: { type: 'llama-server', url: 'http://h/?key=x' } } }", "must hold no password"),
            ("{ backends: [] }", "backends: is an array"), ("{ \(echo), drain: 5 }", "drain: is a number"),
            ("{ \(echo), drain: 'soon' }", "drain is no time"), ("{ \(echo), timers: { gab: '1s' } }", "timers.gab"),
            ("{ \(echo), pools: { 'a b': {} } }", "pools.a b is no name for a pool"),
            ("{ \(echo), pools: { p: { backends: ['e'], slots: 0 } } }", "pools.p.slots: is 0"),
            (
                "{ \(echo), pools: { p: { backends: ['e'], slots: 2, batch_min_slots: 3 } } }",
                "pools.p.batch_min_slots: is 3"
            ),
            ("{ \(echo), pools: { p: { backends: ['e'], kinds: ['poem'] } } }", "pools.p.kinds has \"poem\""),
            ("{ \(echo), pools: { p: { backends: ['f'] } } }", "pools.p: there is no backend \"f\"; known are e"),
            ("{ \(echo), pools: { p: {} } }", "pools.p: `backends` must name at least one"),
            ("{ \(echo), pools: { p: { backends: [1] } } }", "pools.p.backends must hold strings only"),
            ("{ \(echo), templates: { poem: {} } }", "templates.poem is no kind"),
            ("{ \(echo), templates: { reply: { user: 'no place' } } }", "templates.reply.user must contain {text}"),
            (
                "{ \(echo), templates: { reply: { options: { top_k: 1 } } } }",
                "templates.reply.options.top_k is unknown"
            ),
            ("{ \(echo), templates: { reply: { options: { top_p: 2 } } } }", "templates.reply.options.top_p: is 2"),
            ("{ \(echo), redis_url: 'http://h' }", "GEN_REDIS_URL"), ("{ \(echo), ", "is not JSON5"),
            ("[1]", "not an object"),
        ])
    func refused(_ text: String, _ part: String) throws {
        let message = try message(text)
        #expect(message.contains(part), "\(message)")
        #expect(!message.contains("\n"))
    }

    @Test("B26, B47: a key that is no header, or in a file that anybody may write, is refused and not told")
    func keys() throws {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        defer { unlink(path) }
        func read(_ key: String, mode: mode_t = 0o600) throws -> String {
            try Data(key.utf8).write(to: URL(filePath: path))
            chmod(path, mode)
            return try message(
                "{ backends: { b: { type: 'llama-server', url: 'http://h', api_key_file: '\(path)' } } }")
        }
        #expect(
            try read("hunter2") == "accepted" && read("hunter2\n") == "accepted" && read("hunter2\r\n") == "accepted")
        for key in ["hunter2\r\nX-Other: y", "hunter2\n\n", "hunter2\0", "hunter2 x", "hunter2é", "", "\n"] {
            let message = try read(key)
            #expect(
                message != "accepted" && message.contains("api_key_file") && !message.contains("hunter2"), "\(message)")
        }
        #expect(try read("hunter2", mode: 0o666).contains("chmod o-w"))
        try Data("hunter2".utf8).write(to: URL(filePath: path))
        chmod(path, 0o644)
        let configuration = try load(
            "{ backends: { b: { type: 'llama-server', url: 'http://h', api_key_file: '\(path)' } } }")
        #expect(configuration.warnings.count == 1 && configuration.warnings[0].contains("chmod o-r \(path)"))
    }

    @Test("a local backend belongs to one pool, an echo to any number")
    func sharedBackends() throws {
        let pools = "pools: { a: { backends: ['b'] }, c: { backends: ['b'] } }"
        #expect(
            try message("{ backends: { b: { type: 'llama-server', model: 'm' } }, \(pools) }").contains("two pools"))
        #expect(try message("{ backends: { b: { type: 'echo' } }, \(pools) }") == "accepted")
    }

    @Test("the environment wins over the file, and a missing file is named")
    func environment() throws {
        let configuration = try load(
            "{ \(Self.echo), redis_url: 'redis://file' }", environment: ["GEN_REDIS_URL": "redis://environment"])
        #expect(configuration.servers.redis.host == "environment")
        do throws(ConfigurationError) {
            _ = try WorkerConfiguration.load(file: nil, environment: ["GEN_CONFIG": "/nowhere/c.json5"])
            Issue.record("accepted")
        } catch { #expect(error.description.contains("/nowhere/c.json5")) }
    }
}
