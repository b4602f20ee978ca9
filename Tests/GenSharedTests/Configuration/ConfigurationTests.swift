import Foundation
import Testing

@testable import GenShared

@Suite("Configuration")
struct ConfigurationTests {
    @Test("B22: URLs are read with their parts, percent signs decoded")
    func urls() throws {
        let amqp = try AMQPURL("amqp://us%40er:p%3Fa%23ss@[::1]:5673/my%2Fhost")
        #expect(amqp.host == "::1" && amqp.port == 5673 && amqp.user == "us@er" && amqp.virtualHost == "my/host")
        #expect(amqp.password.reveal() == "p?a#ss" && amqp.place == "[::1]:5673")
        let plain = try AMQPURL("amqp://h")
        #expect(plain.port == 5672 && plain.virtualHost == "/" && plain.user == "guest" && !plain.isEncrypted)
        #expect(try AMQPURL("amqps://u:p@h/%2F").port == 5671)
        let redis = try RedisURL("redis://:pw@h:1/5")
        #expect(redis.port == 1 && redis.database == 5 && redis.user == nil && redis.password?.reveal() == "pw")
        #expect(try RedisURL("redis://h").database == 0)
    }

    @Test("B22: a URL may name several hosts, each with a port or the usual one; the first is told apart")
    func hosts() throws {
        let amqp = try AMQPURL("amqp://us:p,w@host1:5672,host2,[::1]:5673,[fe80::1],10.0.0.1/vhost")
        #expect(
            amqp.hosts == [
                ServerAddress(host: "host1", port: 5672), ServerAddress(host: "host2", port: 5672),
                ServerAddress(host: "::1", port: 5673), ServerAddress(host: "fe80::1", port: 5672),
                ServerAddress(host: "10.0.0.1", port: 5672),
            ])
        #expect(amqp.host == "host1" && amqp.port == 5672 && amqp.virtualHost == "vhost" && amqp.user == "us")
        #expect(amqp.place == "host1:5672,host2:5672,[::1]:5673,[fe80::1]:5672,10.0.0.1:5672")
        #expect(amqp.password.reveal() == "p,w")
        #expect(try AMQPURL("amqps://u:p@a,b:1").hosts.map(\.port) == [5671, 1])
        let redis = try RedisURL("redis://host1:6379,host2:6380,host3/2")
        #expect(redis.hosts.map(\.port) == [6379, 6380, 6379] && redis.database == 2)
        #expect(redis.place == "host1:6379,host2:6380,host3:6379")
    }

    @Test(
        "B22: a wrong host of several is refused by its place",
        arguments: [
            ("amqp://a,,b", "host 2 of 3 is empty"), ("amqp://,a", "host 1 of 2"),
            ("amqp://u:hunter2@a,", "host 2 of 2"),
            ("amqp://a:1,b:0", "port of host 2"), ("amqp://a:65536,b", "port of host 1"), ("amqp://a,b:", "host 2"),
            ("amqp://a,[::1", "of host 2 has no closing ]"), ("amqp://[::1]x,b", "of host 1"),
            ("amqp://[::1,b]", "of host 1 has no closing ]"), ("amqp://a,b c", "of host 2"),
            ("amqp://a,:1", "of host 2"),
            ("amqp://u:hunter2@a,u:hunter2@b", "stand once"), ("amqp://[host],b", "host 1 is no IPv6"),
            ("amqp://[]", "no IPv6"), ("amqp://a\u{1B}[2J", "host"), ("amqp://a\0b", "host"), ("amqp://a;b", "host"),
            ("amqp://\(String(repeating: "a", count: 254))", "253"),
            ("amqp://\(String(repeating: "a,", count: 40))a", "41 hosts"),
        ])
    func wrongHosts(_ text: String, _ part: String) {
        do throws(URLRejection) {
            _ = try AMQPURL(text)
            Issue.record("accepted \(text)")
        } catch {
            #expect(error.description.contains(part) && !error.description.contains("hunter2"), "\(error)")
        }
    }

    @Test(
        "B22: wrong URLs are refused without showing the password",
        arguments: [
            "h", "http://u:hunter2@h", "amqp://u:hunter2@h:0", "amqp://u:hunter2@h:99999", "amqp://u:hunter2@h:x",
            "amqp://u:hunter2@", "amqp://hunter2@h", "amqp://u:hunter2@h/%zz", "amqp://u:hunter2%00@h",
            "amqp://u:hunter2@h?heartbeat=-1", "amqp://u:hunter2@h#f", "amqp://u:hunter2@[::1", "amqp://u:hunter2@h h",
        ])
    func wrongURLs(_ text: String) {
        do throws(URLRejection) {
            _ = try AMQPURL(text)
            Issue.record("accepted \(text)")
        } catch {
            #expect(error.description.contains("GEN_AMQP_URL") && !error.description.contains("hunter2"))
        }
    }

    @Test("a secret shows itself nowhere")
    func secret() {
        let secret = Secret("hunter2")
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(describing: secret), String(reflecting: secret), dumped] {
            #expect(!text.contains("hunter2"))
        }
    }

    @Test("B27: JSON5 is read with its comments; unknown names, wrong types and broken text name their place")
    func file() throws {
        let good = try ConfigurationFile(path: "f", data: Data("{ a: 1, /* c */ b: ['x',], c: {d: '5m'}, }".utf8))
        let reader = SettingsReader(good)
        try reader.allow("a", "b", "c")
        #expect(try reader.integer("a", in: 0...5) == 1)
        #expect(try reader.strings("b") == ["x"])
        #expect(try reader.object("c")?.duration("d") == .seconds(300))
        for (body, word) in [
            ({ () throws(ConfigurationError) in try reader.allow("a", "b") }, "c is unknown"),
            ({ () throws(ConfigurationError) in _ = try reader.integer("a", in: 2...5) }, "f:1: a: is 1"),
            ({ () throws(ConfigurationError) in _ = try reader.string("a") }, "must be a string"),
            ({ () throws(ConfigurationError) in _ = try reader.object("c")?.integer("d", in: 0...1) }, "c.d"),
            ({ () throws(ConfigurationError) in _ = try ConfigurationFile(path: "f", data: Data("{a:".utf8)) }, "f"),
            ({ () throws(ConfigurationError) in _ = try ConfigurationFile(path: "/none/f") }, "/none/f"),
        ] as [(() throws(ConfigurationError) -> Void, String)] {
            do throws(ConfigurationError) {
                try body()
                Issue.record("accepted: \(word)")
            } catch { #expect(error.description.contains(word), "\(error)") }
        }
    }

    @Test(
        "B21: times are read as people write them",
        arguments: [
            ("250ms", Duration.milliseconds(250)), ("30s", .seconds(30)), ("1.5s", .milliseconds(1500)),
            ("5m", .seconds(300)),
            ("2h", .seconds(7200)), ("1d", .seconds(86_400)), ("7", .seconds(7)),
        ])
    func durations(_ text: String, _ duration: Duration) { #expect(DurationText.parse(text) == duration) }

    @Test(
        "B21: what is no time is refused",
        arguments: ["", "s", "abc", "-1s", "1e99", "1x", "1 s", "31d", "1..5s", "٣s"])
    func noDurations(_ text: String) { #expect(DurationText.parse(text) == nil) }

    @Test("B18: arguments: unknown, doubled and valueless options are refused; -- ends them")
    func arguments() throws {
        let specification = CommandSpecification(
            "c", arguments: "A [B]", argumentCount: 1...2, summary: "s",
            options: [.init("flag", nil, "f"), .init("value", "V", "v"), .init("many", "M", "m", isRepeatable: true)])
        let parsed = try Arguments(
            ["--flag", "a", "--value=x=y", "--many", "1", "--many", "2", "--", "--b"], specification)
        #expect(parsed.positionals == ["a", "--b"] && parsed.has("flag") && parsed.value("value") == "x=y")
        #expect(parsed.all("many") == ["1", "2"])
        #expect(try Arguments(["-"], specification).positionals == ["-"])
        for words in [
            [], ["a", "b", "c"], ["a", "--nope"], ["a", "-x"], ["a", "--value"], ["a", "--value", "1", "--value", "2"],
            ["a", "--flag", "--flag"], ["a", "--flag=1"],
        ] {
            #expect(throws: UsageError.self) { try Arguments(words, specification) }
        }
        #expect(try Arguments(["--help"], specification).wantsHelp)
    }

    @Test("B46: what a terminal would obey is dropped, text stays")
    func terminalText() {
        #expect(TerminalText.safe("a\u{1B}]52;c;x\u{07}b\tc\nd\u{9B}2J\u{202E}é🚋") == "a]52;c;xb\tc\nd2Jé🚋")
    }
}
