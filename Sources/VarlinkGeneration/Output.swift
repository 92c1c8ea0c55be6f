// SPDX-License-Identifier: Apache-2.0

/// A program's text, line by line.
final class Output {
    private(set) var text = ""
    private var depth = 0

    /// Adds a line.
    func line(_ line: String = "") {
        if !line.isEmpty { text += String(repeating: "    ", count: depth) + line }
        text += "\n"
    }

    /// Adds a comment of documentation in Swift.
    func comment(_ lines: [String]) {
        for line in lines.drop(while: \.isEmpty) { self.line(line.isEmpty ? "///" : "/// \(line)") }
    }

    /// Adds a block of Swift.
    func open(_ head: String, _ body: () -> Void) {
        indent(head, body)
        line("}")
    }

    /// Adds lines below a line, deeper than it.
    func indent(_ head: String, _ body: () -> Void) {
        line(head)
        depth += 1
        body()
        depth -= 1
    }
}
