/// Ways to cut an input, for parsers that must not care where a read ends.
package enum Splits {
    /// Every way to cut it in two, and one piece an element.
    package static func all<Element>(of elements: [Element]) -> [[[Element]]] {
        var ways = (0...elements.count).map { [Array(elements[..<$0]), Array(elements[$0...])] }
        ways.append(elements.map { [$0] })
        return ways
    }

    /// One way, at random.
    package static func random<Element>(
        of elements: [Element], upTo limit: Int, using generator: inout SeededGenerator
    ) -> [[Element]] {
        var pieces: [[Element]] = []
        var rest = elements[...]
        while !rest.isEmpty {
            let count = Int.random(in: 1...limit, using: &generator)
            pieces.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return pieces
    }

    /// Every way to cut a text between two of its scalars, and one piece a scalar.
    package static func all(of text: String) -> [[String]] {
        all(of: Array(text.unicodeScalars)).map { $0.map(string) }
    }

    /// The text of some scalars.
    package static func string(_ scalars: [Unicode.Scalar]) -> String {
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }
}
