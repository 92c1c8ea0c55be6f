// SPDX-License-Identifier: Apache-2.0

import Testing

/// The house rules that `swift format` does not know.
@Suite struct StyleTests {
    /// What one head holds; see CONTRIBUTING.md.
    private static let longestFile = 500
    private static let longestFunction = 70
    private static let longestLine = 120

    /// Every Swift file of the project.
    private static func allFiles() throws -> [SourceFile] {
        try Repository.sources.get() + Repository.tests.get() + Repository.extras.get()
            + [Repository.read("Package.swift")]
    }

    @Test func `the first line names the licence`() throws {
        let line = "// SPDX-License-Identifier: Apache-2.0"
        for file in try Self.allFiles() {
            // SwiftPM wants its own line before.
            let index = file.path.hasSuffix("Package.swift") ? 1 : 0
            #expect(file.lines.dropFirst(index).first == line, "\(file.place(index)): write \"\(line)\"")
        }
    }

    @Test func `files, functions and lines are of a size to be read`() throws {
        for file in try Self.allFiles() {
            let count = file.lines.count - (file.lines.last == "" ? 1 : 0)
            #expect(count <= Self.longestFile, "\(file.path): \(count) lines; cut it where its ideas part")
            for span in FunctionSpan.all(in: file) where span.lines.count > Self.longestFunction {
                Issue.record(
                    "\(file.place(span.lines.lowerBound)): \(span.name) has \(span.lines.count) lines; name its parts")
            }
            for (index, line) in file.lines.enumerated() where line.isLonger(than: Self.longestLine) {
                Issue.record("\(file.place(index)): \(line.count) columns; break the line")
            }
        }
    }

    /// `#expect` prints no part of an expression with `await` in it: of a failure seen once, nothing would be known.
    @Test func `what is awaited is expected by value`() throws {
        let comparison = #/#expect\(.*\bawait\b.* (==|!=|<|>|<=|>=) /#
        for file in try Repository.tests.get() {
            for (index, code) in file.code.enumerated() where code.mentions("#expect(") && code.mentions("await") {
                guard code.contains(comparison) else { continue }
                Issue.record("\(file.place(index)): write `expect(…, is: …)`, which prints the value")
            }
        }
    }

    @Test func `a test is named by a sentence`() throws {
        for file in try Repository.tests.get() {
            var isTest = false
            for (index, code) in file.code.enumerated() {
                isTest = isTest || code.contains(/@Test\b/)
                guard isTest, let start = code.firstRange(of: #/\bfunc /#)?.upperBound else { continue }
                isTest = false
                #expect(code[start...].first == "`", "\(file.place(index)): write what is true, between backticks")
            }
        }
    }

    @Test func `a suite has its type's name and no other`() throws {
        for file in try Repository.tests.get() {
            for (index, code) in file.code.enumerated()
            where code.mentions("@Suite(") && file.lines[index].mentions("@Suite(\"") {
                Issue.record("\(file.place(index)): what the suite is about stands in its comment")
            }
        }
    }

    @Test func `nothing is left for later`() throws {
        // Put together here, so that this file passes its own test.
        let marks = ["FIX" + "ME", "TO" + "DO", "XX" + "X"]
        for file in try Self.allFiles() {
            for (index, line) in file.lines.enumerated() {
                guard let mark = marks.first(where: line.mentions),
                    line.split(whereSeparator: { !$0.isLetter }).contains(Substring(mark))
                else { continue }
                Issue.record("\(file.place(index)): \(mark): do it, or write an issue and take this out")
            }
        }
    }

    @Test func `whoever takes the compiler's word away says who keeps it`() throws {
        let words = ["@unchecked Sendable", "nonisolated(unsafe)", "@unsafe", "unsafeBitCast("]
        for file in try Repository.sources.get() + Repository.tests.get() {
            for (index, code) in file.code.enumerated() {
                guard let word = words.first(where: code.mentions) else { continue }
                #expect(
                    file.hasComment(above: index),
                    "\(file.place(index)): `\(word)` without a word of who guards the value; say it above")
            }
        }
    }

    @Test func `nothing in the sources traps on what may happen`() throws {
        let rules: [(pattern: Regex<Substring>, advice: String)] = [
            (/\btry!/, "handle the error, or say in a precondition why there is none"),
            (/\bas!/, "use `as?`, or a type that needs no cast"),
            // An identifier, a call or a subscript followed by a mark that is no operator: a forced unwrap.
            (/[\w)\]]!(?![=])/, "use `guard let` and say in a precondition why it cannot be nil"),
        ]
        for file in try Repository.sources.get() {
            for (index, code) in file.code.enumerated() where code.mentions("!") {
                guard let rule = rules.first(where: { code.contains($0.pattern) }) else { continue }
                Issue.record("\(file.place(index)): \(rule.advice)")
            }
        }
    }

    @Test func `what traps by intent says why no input leads there`() throws {
        let words = ["fatalError(", "precondition(", "preconditionFailure(", "assert(", "assertionFailure("]
        // Of two equal keys the one, and of a quotient of durations, which may be infinite, the other ends the process.
        let others = [/\buniqueKeysWithValues:/, /\bU?Int(?:8|16|32|64)?\(.* \/ [.a-z(]/]
        for file in try Repository.sources.get() {
            for (index, code) in file.code.enumerated() where code.mentions("(") || code.mentions("uniqueKeys") {
                let isSuspect = code.mentions("uniqueKeys") || code.mentions(" / ")
                guard words.contains(where: code.mentions) || isSuspect && others.contains(where: { code.contains($0) })
                else { continue }
                #expect(
                    file.hasComment(beside: index),
                    "\(file.place(index)): check the input before this, or say beside it why none leads here")
            }
        }
    }

    @Test func `only the executables print`() throws {
        for file in try Repository.sources.get() {
            if ["Sources/dialtone/", "Sources/dialtoned/"].contains(where: file.path.hasPrefix) { continue }
            for (index, code) in file.code.enumerated()
            where code.mentions("rint(") && code.contains(/(?:^|[^\w.])(?:debugPrint|print)\(/) {
                Issue.record("\(file.place(index)): a library tells its caller, and the daemon logs")
            }
        }
    }

    @Test func `no program is started by Foundation, which reads past the end of its heap`() throws {
        for file in try Repository.sources.get() + Repository.tests.get() + Repository.extras.get() {
            for (index, code) in file.code.enumerated()
            where code.mentions("Process()") && code.contains(/\bProcess\(\)/) {
                Issue.record("\(file.place(index)): use TestSupport's `Program`, or a `LabProcess`")
            }
        }
    }

    @Test func `no test sleeps and hopes`() throws {
        for file in try Repository.tests.get() {
            for (index, code) in file.code.enumerated()
            where code.mentions("sleep(") && code.contains(/\b(?:u|nano)?sleep\(/) {
                Issue.record("\(file.place(index)): wait for the event that must come, with a limit (`ChangeSignal`)")
            }
        }
    }
}

extension SourceFile {
    /// Whether a comment stands on the line or the one above.
    fileprivate func hasComment(beside index: Int) -> Bool {
        lines[max(0, index - 1)...index].contains { $0.mentions("//") }
    }

    /// Whether a comment stands on the line or on one of the three above, or in the comment of the declaration there.
    fileprivate func hasComment(above index: Int) -> Bool {
        lines[max(0, index - 3)...index].contains { $0.mentions("//") }
    }
}

extension String {
    /// Whether the line takes more columns than `limit`; counted only where the bytes leave room for doubt.
    fileprivate func isLonger(than limit: Int) -> Bool { utf8.count > limit && count > limit }
}
