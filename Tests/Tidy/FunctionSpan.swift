// SPDX-License-Identifier: Apache-2.0

/// The lines of one function, found by the indentation that `swift format` gives it: from the line of its declaration
/// to the closing brace in the same column.
struct FunctionSpan: Equatable {
    let name: String
    /// Indices of the first and the last line.
    let lines: ClosedRange<Int>

    /// The functions, initializers, subscripts and computed properties of many lines in a file.
    static func all(in file: SourceFile) -> [FunctionSpan] {
        let code = file.code
        return code.indices.compactMap { start in
            guard let name = declaredName(code[start]), let end = end(of: start, in: code) else { return nil }
            return FunctionSpan(name: name, lines: start...end)
        }
    }

    private static func declaredName(_ line: String) -> String? {
        // The pattern takes long, and few lines are worth it: a variable is one if its line opens a body.
        let mayOpen = ["func ", "init", "subscript"].contains(where: line.mentions)
        guard mayOpen || line.mentions("var ") && line.mentions("{") else { return nil }
        let pattern =
            #/
            ^\s*(?:[@\w()]+\s+)*?                    # attributes and modifiers
            (?:
                func\s+(`[^`]+`|[^\s(<]+)
                | (init|deinit|subscript)\b
                | var\s+(\w+)\s*:.*\{\s*$            # computed
            )
            /#
        guard let match = line.firstMatch(of: pattern) else { return nil }
        return (match.output.1 ?? match.output.2 ?? match.output.3).map(String.init)
    }

    /// The line of the brace that closes what is declared at `start`; `nil` for what has no body or only one line.
    private static func end(of start: Int, in code: [String]) -> Int? {
        let indentation = code[start].prefix { $0 == " " }
        // The body opens where a line of the declaration ends with a brace; a requirement of a protocol never does.
        var opening = start
        while !code[opening].trimmed.hasSuffix("{") {
            opening += 1
            guard opening < code.count, isContinuation(code[opening], of: indentation) else { return nil }
        }
        return code[(opening + 1)...].firstIndex { $0.hasPrefix(indentation + "}") }
    }

    private static func isContinuation(_ line: String, of indentation: Substring) -> Bool {
        line.hasPrefix(indentation + " ") || line.hasPrefix(indentation + ")") || line.hasPrefix(indentation + "{")
    }
}

extension String {
    fileprivate var trimmed: Substring {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return text
    }
}
