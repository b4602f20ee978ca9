import GenTestSupport
import Testing

@testable import GenShared

@Suite("Settings and command lines: random input", .timeLimit(.minutes(1)))
struct SettingsPropertyTests {
    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test(
        "a URL: noise and damage are one or a rejection, which never tells the password",
        arguments: RandomInput.seeds(6))
    func urls(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let secret = "hunter2-secret"
        let valid = [
            "amqp://us%40er:\(secret)@host1:5672,[::1]:5673,host3/my%2Fhost", "amqps://u:\(secret)@h/", "amqp://h",
            "redis://u:\(secret)@h:6379,h2/5", "redis://:\(secret)@[fe80::1]:1",
        ].map { Array($0.utf8) }
        for round in 0..<800 {
            let text = Self.text(round % 8 == 0 ? random.noise(upTo: 60) : random.damaged(random.pick(valid)))
            do throws(URLRejection) {
                let amqp = try AMQPURL(text)
                check(amqp.hosts)
                #expect(amqp.virtualHost.utf8.count <= 255 && amqp.user.utf8.count <= 255)
            } catch { #expect(!error.description.contains(secret) && !error.description.contains("\u{1B}")) }
            do throws(URLRejection) {
                let redis = try RedisURL(text)
                check(redis.hosts)
                #expect((0...65535).contains(redis.database))
            } catch { #expect(!error.description.contains(secret) && !error.description.contains("\u{1B}")) }
        }
    }

    private func check(_ hosts: [ServerAddress]) {
        #expect(!hosts.isEmpty)
        for host in hosts {
            #expect((1...65535).contains(host.port) && !host.host.isEmpty)
            #expect(host.host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        }
    }

    private static let configuration = """
        { // servers
          amqp_url: 'amqp://h', "redis_url": "redis://h",
          pools: { text: { kinds: ['slogan', 'reply'], slots: 4, backends: ["a"] } },
          timers: { first_event: '30s', gap: '1.5m' }, /* more */ drain: '25s',
          limits: { body_bytes: 0x400, max_tokens: +100, messages: 1e2, },
        }
        """

    @Test("a configuration: noise and damage are settings or an error of one line", arguments: RandomInput.seeds(6))
    func configuration(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let valid = Array(Self.configuration.utf8)
        for round in 0..<300 {
            let bytes = round % 6 == 0 ? random.noise(upTo: 150) : random.damaged(valid)
            do throws(ConfigurationError) {
                let file = try ConfigurationFile(path: "c", data: bytes)
                try SettingsReader(file).allow(ConfigurationFile.sections)
                let servers = try ServerSettings(environment: [:], file: file)
                let limits = try JobLimits(file: file)
                #expect(!servers.amqp.hosts.isEmpty && limits.bodyBytes >= 1024)
            } catch {
                #expect(
                    error.description.hasPrefix("c:") || error.description.contains(" c ")
                        || error.description.contains("_URL"), "\(error)")
            }
        }
    }

    @Test("JSON5: what is JSON means the same, whatever was done to it", arguments: RandomInput.seeds(6))
    func json5(seed: UInt64) throws {
        var random = RandomInput(seed: seed)
        var values = RandomJSON(seed: seed)
        for _ in 0..<200 {
            let bytes = random.damaged(Array(values.value(depth: 3).serialized.utf8))
            guard let value = try? JSONParser.parse(bytes) else {  // Damaged beyond JSON: JSON5 may take it or not.
                _ = try? JSON5Parser.parse(bytes)
                continue
            }
            #expect(try JSON5Parser.parse(bytes).value == value)
        }
    }

    private static let specification = CommandSpecification(
        "c", arguments: "A [B]", argumentCount: 0...3, summary: "s",
        options: [
            .init("flag", nil, "f"), .init("time", "T", "t"), .init("option", "N=V", "o", isRepeatable: true),
            .init("style", "S", "s"),
        ])

    @Test("a command line: any words are arguments or a usage error of one short line", arguments: RandomInput.seeds(6))
    func commandLines(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let words = [
            "--flag", "--time", "--time=5s", "--time=1e99", "--option", "--option=temperature=0.5", "temperature=nan",
            "seed=-1",
            "--option=max_tokens=18446744073709551616", "--option=stop=\n", "--option==", "--option=thinking=maybe",
            "--style",
            "--", "-", "-x", "--=x", "--help", "-h", "", " ", "text", "é😀", "--nope=\u{1B}[2J", "poem", "slogan",
        ]
        for _ in 0..<500 {
            let line = (0..<random.number(upTo: 6)).map { _ in
                random.number(upTo: 4) == 0
                    ? Self.text(random.damaged(Array(random.pick(words).utf8))) : random.pick(words)
            }
            do throws(UsageError) {
                let arguments = try Arguments(line, Self.specification)
                guard !arguments.wantsHelp else { continue }
                if let time = try arguments.duration("time") { #expect(time > .zero) }
                let job = try JobArguments.job(
                    arguments, kind: arguments.positionals.first ?? "reply", text: arguments.positionals.last ?? "x")
                #expect((try? Job(body: job.body)) != nil)
            } catch { #expect(error.description.utf8.count < 400, "\(error)") }
        }
    }
}
