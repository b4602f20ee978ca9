import Testing

@testable import GenShared

@Suite("Arguments")
struct ArgumentsTests {
    private let specification = CommandSpecification(
        "send", arguments: "A [B]", argumentCount: 0...2, summary: "Sends.",
        options: [
            .init("quick", nil, "at once"), .init("lane", "LANE", "which lane"),
            .init("option", "NAME=VALUE", "an option", isRepeatable: true), .init("after", "TIME", "how long"),
        ],
        examples: ["send a"])

    private func message(_ words: [String]) -> String {
        do throws(UsageError) {
            _ = try Arguments(words, specification)
            return "accepted"
        } catch { return error.description }
    }

    @Test("options may stand anywhere, with = or with a space")
    func forms() throws {
        for words in [["--lane", "x", "a", "b"], ["a", "--lane=x", "b"], ["a", "b", "--lane", "x"]] {
            let arguments = try Arguments(words, specification)
            #expect(arguments.value("lane") == "x" && arguments.positionals == ["a", "b"] && !arguments.has("quick"))
        }
    }

    @Test("a value may be empty, hold an equals sign, or begin with a dash")
    func values() throws {
        #expect(try Arguments(["--lane="], specification).value("lane") == "")
        #expect(try Arguments(["--lane=a=b"], specification).value("lane") == "a=b")
        #expect(try Arguments(["--lane", "-5"], specification).value("lane") == "-5")
        #expect(try Arguments(["--option", "a=1", "--option=b=2"], specification).all("option") == ["a=1", "b=2"])
    }

    @Test("B18: after -- everything is text, a lone - is, too")
    func endOfOptions() throws {
        #expect(try Arguments(["--", "--lane", "--"], specification).positionals == ["--lane", "--"])
        #expect(try Arguments(["-", "--quick"], specification).positionals == ["-"])
        #expect(try Arguments(["--", "--help"], specification).wantsHelp == false)
    }

    @Test(
        "B18: what makes no sense is refused, and said what and how",
        arguments: [
            (["--slow"], "unknown option --slow"), (["-q"], "unknown option -q"), (["-5"], "put -- before text"),
            (["--lane"], "--lane needs a value"), (["--quick=1"], "--quick takes no value"),
            (["--quick", "--quick"], "--quick is given twice"), (["--lane=a", "--lane", "b"], "--lane is given twice"),
            (["a", "b", "c"], "too many arguments: send takes A [B]"),
            (["--password=hunter2"], "unknown option --password;"),
        ])
    func refused(_ words: [String], _ part: String) {
        let message = message(words)
        #expect(message.contains(part) && !message.contains("hunter2"), "\(message)")
    }

    @Test("B19: a word that is not UTF-8 is refused by its number")
    func notUTF8() throws {
        #expect(try ProgramWords.decode([Array("é".utf8), []]) == ["é", ""])
        for word in [[0xFF], [0x47, 0x72, 0xFC], [0xED, 0xA0, 0x80], [0xC3]] as [[UInt8]] {
            do throws(UsageError) {
                _ = try ProgramWords.decode([Array("a".utf8), word])
                Issue.record("accepted")
            } catch { #expect(error.description.contains("argument 2 is not UTF-8")) }
        }
    }

    @Test("B30: ten thousand arguments, and one of a megabyte, are refused in a short line")
    func large() {
        #expect(message(Array(repeating: "a", count: 10_000)).utf8.count < 200)
        #expect(message(["--\(String(repeating: "x", count: 1 << 20))"]).utf8.count < 200)
    }

    @Test("help is heard wherever it stands, and nothing else is checked then")
    func help() throws {
        #expect(try Arguments(["--nonsense", "-h"], specification).wantsHelp)
        #expect(try Arguments(["a", "b", "c", "--help"], specification).wantsHelp)
    }

    @Test("too few arguments are told by what is missing")
    func count() {
        let one = CommandSpecification("watch", arguments: "ID", argumentCount: 1...1, summary: "Watches.")
        do throws(UsageError) {
            _ = try Arguments([], one)
            Issue.record("accepted")
        } catch { #expect(error.description == "watch needs ID") }
    }

    @Test("B21: times are above 0 and have a unit that people know")
    func durations() throws {
        #expect(try Arguments(["--after", "1.5s"], specification).duration("after") == .milliseconds(1500))
        #expect(try Arguments([], specification).duration("after") == nil)
        for text in ["0", "0s", "-1", "1e99", "abc", "", "0.0001s", "31d", "5 m", "1h30m", "inf", "nan", "0x10"] {
            #expect(throws: UsageError.self, "\(text)") {
                try Arguments(["--after=\(text)"], specification).duration("after")
            }
        }
    }

    @Test("the help has usage, every option, examples and exit codes")
    func helpText() {
        let help = specification.help(program: "gen")
        #expect(help.hasPrefix("usage: gen send A [B] [options]\n\nSends.\n"))
        for part in ["--quick", "--lane LANE", "--option NAME=VALUE", "Examples:\n  send a", "130 interrupted"] {
            #expect(help.contains(part))
        }
    }
}
