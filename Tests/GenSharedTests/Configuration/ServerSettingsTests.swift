import Foundation
import Testing

@testable import GenShared

@Suite("Server settings")
struct ServerSettingsTests {
    /// Calls the body with the path of a file that holds the text.
    private func withFile(_ text: String, _ body: (String) throws -> Void) throws {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        try Data(text.utf8).write(to: URL(filePath: path))
        defer { unlink(path) }
        try body(path)
    }

    private func message(_ environment: [String: String], file: ConfigurationFile? = nil) -> String {
        do throws(ConfigurationError) {
            _ = try ServerSettings(environment: environment, file: file)
            return "accepted"
        } catch { return error.description }
    }

    @Test("without any setting the servers are on this machine")
    func defaults() throws {
        let settings = try ServerSettings(environment: [:], file: nil)
        #expect(settings.amqp.place == "127.0.0.1:5672" && settings.amqp.user == "guest")
        #expect(settings.redis.place == "127.0.0.1:6379" && settings.redis.password == nil)
    }

    @Test("the environment wins over a secret's file, which wins over the configuration, which wins over defaults")
    func order() throws {
        let file = try ConfigurationFile(
            path: "f", data: Data("{amqp_url: 'amqp://file', redis_url: 'redis://file'}".utf8))
        #expect(try ServerSettings(environment: [:], file: file).amqp.host == "file")
        try withFile("amqp://secret\n") { path in
            var environment = ["GEN_AMQP_URL_FILE": path]
            #expect(try ServerSettings(environment: environment, file: file).amqp.host == "secret")
            environment["GEN_AMQP_URL"] = "amqp://environment"
            let settings = try ServerSettings(environment: environment, file: file)
            #expect(settings.amqp.host == "environment" && settings.redis.host == "file")
            // An empty variable is none.
            environment["GEN_AMQP_URL"] = ""
            #expect(try ServerSettings(environment: environment, file: nil).amqp.host == "secret")
        }
    }

    @Test("B26: a secret's file that is missing, empty or no short text is refused by name")
    func secretFiles() throws {
        #expect(message(["GEN_REDIS_URL_FILE": "/nowhere/s"]).contains("GEN_REDIS_URL_FILE: /nowhere/s cannot be read"))
        try withFile("") { #expect(message(["GEN_REDIS_URL_FILE": $0]).contains("is empty")) }
        try withFile("\n") { #expect(message(["GEN_REDIS_URL_FILE": $0]).contains("is empty")) }
        try withFile(String(repeating: "x", count: 5000)) {
            #expect(message(["GEN_REDIS_URL_FILE": $0]).contains("not a short text"))
        }
    }

    @Test("B26: one line end goes, the rest is the secret")
    func trimming() throws {
        for (text, host) in [("redis://a", "a"), ("redis://a\n", "a"), ("redis://a\r\n", "a")] {
            try withFile(text) { path in
                let settings = try ServerSettings(environment: ["GEN_REDIS_URL_FILE": path], file: nil)
                #expect(settings.redis.host == host)
            }
        }
    }

    @Test("B26: a secret's file that anybody may write is refused, one that anybody may read is told of")
    func modes() throws {
        try withFile("redis://:hunter2@h") { path in
            for (mode, count) in [(0o600, 0), (0o640, 0), (0o644, 1), (0o604, 1), (0o400, 0)] as [(mode_t, Int)] {
                chmod(path, mode)
                let settings = try ServerSettings(environment: ["GEN_REDIS_URL_FILE": path], file: nil)
                #expect(settings.warnings.count == count)
                #expect(
                    settings.warnings.allSatisfy {
                        $0.hasPrefix("GEN_REDIS_URL_FILE: \(path)") && !$0.contains("hunter2")
                    })
            }
            for mode in [0o666, 0o602] as [mode_t] {
                chmod(path, mode)
                let message = message(["GEN_REDIS_URL_FILE": path])
                #expect(message.contains("chmod o-w \(path)") && !message.contains("hunter2"))
            }
        }
    }

    @Test(
        "B26, B47: a secret of several lines or with control characters is refused, and not told",
        arguments: [
            "redis://:hunter2\nx@h", "redis://h\n\n", "redis://:hunter2\r\nX: y@h", "redis://:hunter2\0@h",
            "\u{1B}hunter2",
        ])
    func severalLines(_ text: String) throws {
        try withFile(text) { path in
            let message = message(["GEN_REDIS_URL_FILE": path])
            #expect(message.contains("control characters") && !message.contains("hunter2"))
        }
    }

    @Test(
        "B22, B23: a wrong URL is refused by the name of its setting, and its secret is not told",
        arguments: [
            ("redis://:hunter2@h/x", "database"), ("redis://h/65536", "database"), ("redis://h/-1", "database"),
            ("redis://h/0/1", "database"), ("redis://hunter2@h", "without a password"), ("rediss://:hunter2@h", "TLS"),
            ("redis://:hunter2@", "host"), ("redis://:hunter2@h:0", "port"), ("redis://:hunter2@h:65536", "port"),
            ("redis://:hunter2@h:", "port"), ("redis://:hunter2@h:+1", "port"), ("redis://:hunter2@h/%g0", "path"),
            ("redis://:%zzhunter2@h", "password"), ("hunter2", "no scheme"), ("hunter2hunter2://h", "the scheme"),
            ("redis://:hunter2@[::1", "]"), ("redis://:hunter2@[::1]x", "]"), ("redis://:hunter2@h?db=1", "?"),
        ])
    func wrongURLs(_ url: String, _ part: String) {
        let message = message(["GEN_REDIS_URL": url])
        #expect(message.hasPrefix("GEN_REDIS_URL: ") && message.contains(part), "\(message)")
        #expect(!message.contains("hunter2"), "\(message)")
    }

    @Test("no part of a URL shows its secret: not printed, not dumped, not in a string")
    func noSecretShown() throws {
        let settings = try ServerSettings(
            environment: ["GEN_AMQP_URL": "amqp://u:hunter2@h", "GEN_REDIS_URL": "redis://u:hunter2@h"], file: nil)
        var dumped = ""
        dump(settings, to: &dumped)
        var printed = ""
        print(settings, settings.amqp, settings.redis, to: &printed)
        for text in [
            dumped, printed, "\(settings)", String(reflecting: settings), "\(Mirror(reflecting: settings.amqp))",
        ] {
            #expect(!text.contains("hunter2"), "\(text)")
        }
        #expect(settings.amqp.password == Secret("hunter2") && settings.amqp.password != Secret("hunter3"))
    }
}
