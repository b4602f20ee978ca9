import Foundation
import Testing

@testable import GenShared

@Suite("Configuration file")
struct ConfigurationFileTests {
    private func reader(_ text: String) throws -> SettingsReader {
        SettingsReader(try ConfigurationFile(path: "c.json5", data: Data(text.utf8)))
    }

    private func message(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "accepted"
        } catch { return "\(error)" }
    }

    @Test("every kind of value is read; null is not given")
    func values() throws {
        let reader = try reader("{s: 'x', i: 3, n: 0.5, b: true, l: ['a', 'b'], o: {d: '250ms'}, z: null, big: 1e3}")
        #expect(try reader.string("s") == "x" && reader.integer("i", in: 0...9) == 3 && reader.bool("b") == true)
        #expect(try reader.number("n", in: 0...1) == 0.5 && reader.number("i", in: 0...9) == 3)
        #expect(try reader.strings("l") == ["a", "b"] && reader.integer("big", in: 0...1000) == 1000)
        #expect(try reader.object("o")?.duration("d") == .milliseconds(250))
        #expect(try reader.string("z") == nil && reader.string("none") == nil && reader.has("z") && !reader.has("none"))
        #expect(reader.names == ["b", "big", "i", "l", "n", "o", "s", "z"])
    }

    @Test("B27: a wrong value names file and place")
    func places() throws {
        let reader = try reader("{a: {b: {c: 7, d: 'soon', e: [1], f: 'x'}}}")
        let inner = try #require(try reader.object("a")?.object("b"))
        for (body, place) in [
            ({ _ = try inner.string("c") }, "a.b.c: is a number, must be a string"),
            ({ _ = try inner.integer("c", in: 8...9) }, "a.b.c: is 7, must be 8 to 9"),
            ({ _ = try inner.duration("d") }, "a.b.d is no time"),
            ({ _ = try inner.strings("e") }, "a.b.e must hold strings"),
            ({ _ = try inner.object("f") }, "a.b.f: is a string, must be an object"),
            ({ _ = try inner.bool("c") }, "a.b.c: is a number, must be true or false"),
            ({ try inner.allow("c", "d", "e") }, "a.b.f is unknown; known here: c, d, e"),
        ] as [(() throws -> Void, String)] {
            let message = message(body)
            #expect(message.hasPrefix("c.json5:1: ") && message.contains(place), "\(message)")
        }
    }

    @Test("B27: an unknown name, a wrong type and a wrong value name their line")
    func lines() throws {
        let reader = try reader("{\n  // A comment.\n  a: {\n    b: 1,\r\n\n    'c': [\n1],\n  },\n  d: 7 }")
        let inner = try #require(try reader.object("a"))
        for (body, start) in [
            ({ try inner.allow("b") }, "c.json5:6: a.c is unknown"),
            ({ _ = try inner.string("b") }, "c.json5:4: a.b: "),
            ({ _ = try inner.strings("c") }, "c.json5:6: a.c must"), ({ _ = try reader.bool("d") }, "c.json5:9: d: "),
        ] as [(() throws -> Void, String)] {
            #expect(message(body).hasPrefix(start), "\(message(body))")
        }
    }

    @Test("B27: a name that stands twice is refused with both lines")
    func doubled() {
        for text in ["{a: 1,\n a: 2}", "{a: 1,\n 'a': 2}", "{a: 1,\n \"\\u0061\": 2}", "{\\u0061: 1,\n a: 2}"] {
            #expect(
                message { _ = try reader(text) }.contains(
                    "line 2, column 2: the name \"a\" stands twice, first in line 1"))
        }
        #expect(message { _ = try reader("{a: {b: 1,\nb: 2}}") }.contains("first in line 1"))
        #expect(message { _ = try reader("{a: {b: 1}, c: {b: 2}}") } == "accepted")
    }

    @Test("B27: a file that anybody may write is refused, one that anybody may read is told of if it has a password")
    func modes() throws {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        defer { unlink(path) }
        for (mode, text, warns) in [
            (0o600, "amqp://u:hunter2@h", false), (0o644, "amqp://u:hunter2@h", true), (0o644, "amqp://h", false),
            (0o660, "amqp://u:hunter2@h", false),
        ] as [(mode_t, String, Bool)] {
            try Data("{amqp_url: '\(text)'}".utf8).write(to: URL(filePath: path))
            chmod(path, mode)
            let warnings = try ServerSettings(environment: [:], file: ConfigurationFile(path: path)).warnings
            #expect(warnings.count == (warns ? 1 : 0) && !warnings.joined().contains("hunter2"))
        }
        for mode in [0o666, 0o777, 0o602] as [mode_t] {
            chmod(path, mode)
            let message = message { _ = try ConfigurationFile(path: path) }
            #expect(message.contains(path) && message.contains("chmod o-w"), "\(message)")
        }
    }

    @Test("B19, B27: an endless file and a pipe into which nobody writes end, too")
    func endless() throws {
        #expect(message { _ = try ConfigurationFile(path: "/dev/zero") }.contains("larger than 1 MiB"))
        #expect(message { _ = try ConfigurationFile(path: "/dev/null") }.contains("not JSON5"))
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        try #require(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let failure = message { _ = try BoundedFile.read(path, limit: 10, patience: .milliseconds(50)) }
        #expect(failure == "silent")
        // Held open for writing, so that the reader comes second.
        let writer = open(path, O_RDWR)
        defer { close(writer) }
        try #require(write(writer, "0123456789a", 11) == 11)
        #expect(message { _ = try BoundedFile.read(path, limit: 10) } == "tooLarge")
    }

    @Test("options of a template obey a job's own rules")
    func options() throws {
        let options = try #require(try reader("{o: {temperature: 0.5, max_tokens: 7, stop: ['x']}}").options("o"))
        #expect(options.temperature == 0.5 && options.maxTokens == 7 && options.stop == ["x"])
        #expect(message { _ = try reader("{o: {temperature: 9}}").options("o") }.contains("o.temperature: is 9"))
        #expect(message { _ = try reader("{o: {heat: 1}}").options("o") }.contains("o.heat is unknown"))
    }

    @Test("B27: a file that is no object, no JSON5 or too large is refused by its path")
    func broken() {
        for (text, part) in [
            ("[]", "is an array, not an object"), ("7", "is a number"), ("", "c.json5"), ("{a:", "is not JSON5"),
            ("{a: 'x'", "is not JSON5"), ("{\"a\": 1}}", "c.json5"),
        ] {
            let message = message { _ = try reader(text) }
            #expect(message.contains(part) && message.contains("c.json5"), "\(message)")
        }
        let large = "{a: '\(String(repeating: "x", count: 1 << 20))'}"
        #expect(message { _ = try reader(large) }.contains("larger than 1 MiB"))
    }

    @Test("a file is looked for where it was named, else in the usual places")
    func search() throws {
        let directory = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        let place = "\(directory)/gencluster"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }  // Temporary: no harm if it stays.
        try Data("{drain: '1s'}".utf8).write(to: URL(filePath: "\(place)/config.json5"))
        let found = try ConfigurationFile.load(
            named: nil, environment: ["XDG_CONFIG_HOME": directory, "HOME": "/none"])
        #expect(found?.path == "\(place)/config.json5")
        #expect(message { _ = try ConfigurationFile.load(named: "/none/c", environment: [:]) }.contains("/none/c"))
        #expect(message { _ = try ConfigurationFile.load(named: directory, environment: [:]) }.contains(directory))
    }
}
