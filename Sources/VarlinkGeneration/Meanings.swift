// SPDX-License-Identifier: Apache-2.0

/// What a comment says of each value of an enumeration: "first: what it means. second: ...".
struct Meanings {
    /// What it says before the first value, or all of it where it says nothing of values.
    private(set) var introduction: [String] = []
    private var meanings: [String: [String]] = [:]

    init(of values: [String], in comment: [String]) {
        let signs = Set(values.map { "\($0):" })
        var present: String?
        var last = ""
        for line in comment {
            var part = ""
            func add(_ part: String, to value: String?) {
                let trimmed = part.drop { $0 == " " }
                guard !trimmed.isEmpty else { return }
                if let value { meanings[value, default: []].append(String(trimmed)) } else { introduction.append(part) }
            }
            for word in line.split(separator: " ", omittingEmptySubsequences: false) {
                // At the beginning of a sentence.
                if signs.contains(String(word)), last.isEmpty || last.hasSuffix(".") {
                    add(part, to: present)
                    (part, present) = ("", String(word.dropLast()))
                } else {
                    part += part.isEmpty ? word : " \(word)"
                }
                last = String(word)
            }
            add(part, to: present)
        }
    }

    /// What it says of a value; nothing where it does not.
    subscript(value: String) -> [String] { meanings[value] ?? [] }
}
