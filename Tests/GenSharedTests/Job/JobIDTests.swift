import GenTestSupport
import Testing

@testable import GenShared

@Suite("Job id", .timeLimit(.minutes(1)))
struct JobIDTests {
    @Test(
        "1 to 64 letters, digits, _ and - of ASCII are an id",
        arguments: [
            "a", "Z", "0", "_", "-", "--", "01j9z3k5m7n8p9q0r1s2t3v4w5", "A_b-9", String(repeating: "x", count: 64),
        ])
    func takesForeignIDs(text: String) throws {
        let id = try #require(JobID(text))
        #expect(id.rawValue == text)
        #expect(id.description == text)
    }

    @Test(
        "B08: anything else is none",
        arguments: [
            "", " ", "a b", "a\n", "\na", "a\0", "\0", "a/b", "../a", "..", ".", "*", "?", "[a]", "{a}", "a:b", "a;b",
            "a%2Fb",
            "a\\b", "a\"", "é", "ａ", "١", "😀", "e\u{301}", "a\u{200B}", "\u{212A}", String(repeating: "x", count: 65),
            String(repeating: "x", count: 300),
        ])
    func refusesOther(text: String) {
        #expect(JobID(text) == nil)
    }

    @Test("of all single bytes exactly 64 are allowed")
    func allowsTheRule() {
        let allowed = (UInt8.min ... .max).filter { JobID(String(decoding: [$0], as: UTF8.self)) != nil }
        #expect(
            String(decoding: allowed, as: UTF8.self)
                == "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
    }

    @Test("ids that differ in case differ")
    func comparesCase() {
        #expect(JobID("a") != JobID("A"))
        #expect(Set([JobID("a"), JobID("A"), JobID("a")]).count == 2)
    }

    @Test(
        "a new id has 26 characters of lower-case Crockford base 32",
        arguments: [0, 1, 1_796_040_000_000, 1 << 48 - 1, -1, .max, .min])
    func makesULIDs(milliseconds: Int64) throws {
        let text = JobID(atMilliseconds: milliseconds).rawValue
        #expect(text.utf8.count == 26)
        #expect(text.allSatisfy { "0123456789abcdefghjkmnpqrstvwxyz".contains($0) })
        #expect(try #require(text.first) <= "7")  // 48 bits of time need no more.
        #expect(JobID(text)?.rawValue == text)
    }

    @Test(
        "the time stands in the first ten characters",
        arguments: [
            (0, "0000000000"), (1, "0000000001"), (32, "0000000010"), (1_469_918_176_385, "01aryz6s41"),
            (1 << 48 - 1, "7zzzzzzzzz"),
        ])
    func writesTime(milliseconds: Int64, prefix: String) {
        #expect(JobID(atMilliseconds: milliseconds).rawValue.hasPrefix(prefix))
    }

    @Test("later ids sort behind earlier ones, as text")
    func sortsByTime() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<500 {
            let earlier = Int64.random(in: 0..<(1 << 48 - 1), using: &generator)
            let step = Int64.random(in: 0..<20, using: &generator)
            let later = min(1 << 48 - 1, earlier + 1 << step)
            let first = JobID(atMilliseconds: earlier, using: &generator)
            let second = JobID(atMilliseconds: later, using: &generator)
            #expect(Array(first.rawValue.utf8).lexicographicallyPrecedes(Array(second.rawValue.utf8)))
        }
    }

    @Test("the same generator gives the same ids, and one moment has room for many")
    func usesGenerator() {
        var (first, second) = (SeededGenerator(seed: 7), SeededGenerator(seed: 7))
        #expect(JobID(atMilliseconds: 5, using: &first) == JobID(atMilliseconds: 5, using: &second))
        #expect(Set((0..<1000).map { _ in JobID(atMilliseconds: 5, using: &first) }).count == 1000)
        #expect(Set((0..<1000).map { _ in JobID(atMilliseconds: 5) }).count == 1000)
    }

    @Test("the random part uses all 80 bits")
    func usesAllBits() {
        var generator = SeededGenerator(seed: 3)
        let ids = (0..<400).map { _ in Array(JobID(atMilliseconds: 0, using: &generator).rawValue.utf8) }
        for place in 10..<26 { #expect(Set(ids.map { $0[place] }).count == 32) }
    }

    @Test("a job's names in Redis share one hash tag")
    func makesKeys() throws {
        let keys = JobKeys(try #require(JobID("a-1")))
        #expect(keys.channel == "gen:{a-1}")
        #expect(keys.record == "gen:{a-1}:job")
        #expect(keys.events == "gen:{a-1}:events")
        #expect(keys.cancel == "gen:{a-1}:cancel")
        #expect(JobKeys.worker("w") == "gen:worker:w")
    }

    @Test(
        "a pool's name is an id of at most 32 characters",
        arguments: [("text", true), ("a-B_9", true), ("", false), ("a.b", false), ("*", false), ("ä", false)])
    func checksPoolNames(text: String, allowed: Bool) {
        #expect(Job.isPoolName(text) == allowed)
        #expect(Job.isPoolName(String(repeating: "x", count: 32)))
        #expect(!Job.isPoolName(String(repeating: "x", count: 33)))
    }
}
