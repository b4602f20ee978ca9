import GenShared

/// Cleans a model's answer while it streams, so that the pieces that were shown, joined, are the result.
///
/// It holds back what may still have to go: at the start, until it is clear whether a label or a quotation mark
/// stands there; later, white space and closing marks that may be the end. For a slogan the first line end after
/// some text is the end, which stops the backend.
struct OutputFilter {
    /// What a kind of job wants.
    enum Form {
        /// One line.
        case line
        /// Text with its paragraphs.
        case text
        /// As it comes: a result that must fit a schema.
        case verbatim
    }

    private enum Phase {
        case start
        case middle
        case ended
    }

    private let form: Form
    private var phase = Phase.start
    /// Not shown yet: at the start what may be a label, later what may be the end.
    private var held = ""
    /// The mark that must go at the end because its partner went at the start.
    private var closing: Set<Character> = []

    /// A start that is longer than this is no label.
    private static let startLimit = 48
    private static let labels = [
        "slogan", "tagline", "rewritten text", "rewritten draft", "rewritten version", "rewrite", "rewritten", "reply",
        "response", "answer", "draft", "text", "message",
    ]
    /// How chatty models begin before they answer; held back up to a colon, or this many characters.
    private static let leadIns = ["here is ", "here's ", "here are ", "sure, here", "sure! here", "certainly"]
    private static let leadInWords = [
        "slogan", "tagline", "draft", "text", "version", "reply", "rewrit", "response", "message", "answer",
    ]
    private static let leadInLimit = 96
    private static let quotes: [Character: Set<Character>] = [
        "\"": ["\""], "\u{201C}": ["\u{201D}", "\u{201C}"], "\u{201E}": ["\u{201C}", "\u{201D}"],
        "\u{00AB}": ["\u{00BB}"],
        "*": ["*"], "_": ["_"], "`": ["`"], "\u{2018}": ["\u{2019}"],
    ]

    init(_ form: Form) { self.form = form }

    /// The form of a job's result.
    init(for job: Job) {
        let isLine = job.kind == .slogan
        self.init(job.input.schema != nil ? .verbatim : isLine ? .line : .text)
    }

    /// Whether the answer is complete whatever still comes.
    var isEnded: Bool { phase == .ended }

    /// Takes the next piece.
    /// - Returns: what can be shown now; often less, sometimes more than the piece.
    mutating func feed(_ piece: String) -> String {
        guard form != .verbatim else { return piece }
        guard phase != .ended else { return "" }
        held += piece
        if phase == .start {
            guard beginsText(isWhole: false) else { return "" }
            phase = .middle
        }
        return takeMiddle()
    }

    /// The rest, when the model is done.
    mutating func finish() -> String {
        guard form != .verbatim, phase != .ended else { return "" }
        if phase == .start { _ = beginsText(isWhole: true) }
        phase = .middle
        let shown = takeMiddle()
        phase = .ended
        defer { held = "" }
        return shown + Self.trimmingEnd(held, closing)
    }

    /// Removes white space, labels, list marks and opening quotation marks from the start.
    /// - Returns: whether text begins at the start of `held`; otherwise more is needed to know.
    private mutating func beginsText(isWhole: Bool) -> Bool {
        while true {
            let text = held.drop { $0.isWhitespace }
            guard let first = text.first else {
                // What comes next may still join the last character: none is judged before the next has begun.
                held = isWhole ? "" : String(held.suffix(1))
                return false
            }
            held = String(text)
            if let partners = Self.quotes[first] {
                // "'Tis" and "*" alone may be text; a quotation mark at the very start hardly ever is.
                if held.dropFirst().isEmpty && !isWhole { return false }
                closing.formUnion(partners)
                held.removeFirst()
                continue
            }
            switch removeLabel(isWhole: isWhole) {
            case .removed: continue
            case .undecided: return false
            case .none: return true
            }
        }
    }

    private enum Label {
        case removed
        case undecided
        case none
    }

    private mutating func removeLabel(isWhole: Bool) -> Label {
        if let label = removeLeadIn(isWhole: isWhole) { return label }
        if form == .line, let mark = Self.listMark(held.prefix(Self.startLimit)) {
            guard let mark, isWhole || held.count > mark else { return isWhole ? .none : .undecided }
            held = String(held.dropFirst(mark))
            return .removed
        }
        let start = held.prefix { !$0.isNewline }.prefix(Self.startLimit)
        if let colon = start.firstIndex(of: ":") {
            let words = start[..<colon].lowercased().filter { !"*_\"#".contains($0) }
            guard Self.labels.contains(words.trimmingSpaces) else { return .none }
            return removeStart(through: colon, isWhole: isWhole)
        }
        if isWhole || held.count >= Self.startLimit || held.contains(where: \.isNewline) { return .none }
        // Only a start that may still grow into a label is worth waiting for.
        let words = start.lowercased().filter { !"*_\"#".contains($0) }.drop { $0.isWhitespace }
        return Self.labels.contains { $0.hasPrefix(words) || String(words).trimmingSpaces == $0 } ? .undecided : .none
    }

    /// Removes a label, unless its colon may still be joined by what follows.
    private mutating func removeStart(through colon: String.Index, isWhole: Bool) -> Label {
        let rest = held[held.index(after: colon)...]
        guard isWhole || !rest.isEmpty else { return .undecided }
        held = String(rest)
        return .removed
    }

    /// A first line such as "Here is a slogan for your shop:", however it goes on.
    /// - Returns: `nil` where none begins here.
    private mutating func removeLeadIn(isWhole: Bool) -> Label? {
        let line = held.prefix { !$0.isNewline }.prefix(Self.leadInLimit)
        let start = line.lowercased().replacing("\u{2019}", with: "'")
        let begins = Self.leadIns.contains { start.hasPrefix($0) }
        if let colon = line.firstIndex(of: ":"), begins {
            // "Here is the thing: I am late" is text; a lead-in names what follows.
            let words = start.prefix { $0 != ":" }
            guard Self.leadInWords.contains(where: { words.contains($0) }) else { return nil }
            return removeStart(through: colon, isWhole: isWhole)
        }
        let isOpen = !isWhole && line.count < Self.leadInLimit && line.count == held.count
        let mayBegin = begins || Self.leadIns.contains { $0.hasPrefix(start) }
        return isOpen && mayBegin ? .undecided : nil
    }

    /// The length of a list mark (`1. `, `- `, `# `) at the start; `.some(nil)` where more is needed to know.
    private static func listMark(_ text: Substring) -> Int?? {
        guard let first = text.first else { return nil }
        if "-•#".contains(first) {
            let marks = text.prefix { $0 == first }.count
            guard text.count > marks else { return text.count < startLimit ? .some(nil) : nil }
            return text.dropFirst(marks).first?.isWhitespace == true ? .some(marks + 1) : nil
        }
        let digits = text.prefix { $0.isASCII && $0.isNumber }.count
        guard digits > 0, digits <= 2 else { return nil }
        let rest = text.dropFirst(digits)
        guard rest.count >= 2 else { return rest.isEmpty || ".)".contains(rest.first ?? " ") ? .some(nil) : nil }
        let isMark = ".)".contains(rest.first ?? " ") && rest.dropFirst().first?.isWhitespace == true
        return isMark ? .some(digits + 2) : nil
    }

    /// Shows everything but an end that may still have to go.
    private mutating func takeMiddle() -> String {
        if form == .line, let end = held.firstIndex(where: \.isNewline) {
            let line = String(held[..<end])
            phase = .ended
            held = ""
            return Self.trimmingEnd(line, closing)
        }
        let kept = Self.trimmingEnd(held, closing)
        // The last scalar may still be joined by what follows: whole scalars are enough, but a mark must not be cut
        // from the letter that it belongs to while it could be part of the end.
        held = String(held.unicodeScalars.dropFirst(kept.unicodeScalars.count))
        return kept
    }

    private static func trimmingEnd(_ text: String, _ closing: Set<Character>) -> String {
        var end = text.endIndex
        while end > text.startIndex {
            let before = text.index(before: end)
            guard text[before].isWhitespace || closing.contains(text[before]) else { break }
            end = before
        }
        return String(text[..<end])
    }
}

extension String {
    fileprivate var trimmingSpaces: String {
        var text = self[...]
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}
