// SPDX-License-Identifier: Apache-2.0

/// Takes comments and strings out of Swift, line by line. It knows as much of the language as this repository uses:
/// line comments, nested block comments, strings of one and of many lines, with `#` and without. Code within an
/// interpolation counts as string.
struct CodeScanner {
    private enum State: Equatable {
        case code
        case blockComment(depth: Int)
        /// A string of many lines, which ends with `"""` and as many `#` as it began with.
        case longString(hashes: Int)
    }

    private var state = State.code
    /// The line at hand, as bytes: characters cost a hundred times as much, and this reads the whole repository.
    private var line: [UInt8] = []
    private var position = 0

    /// The code of the next line; a string that was taken out leaves a blank.
    mutating func code(of line: String) -> String {
        if state == .code, !["/", "#", "\""].contains(where: line.mentions) { return line }
        (self.line, position) = (Array(line.utf8), 0)
        var code: [UInt8] = []
        while position < self.line.count {
            switch state {
            case .code: takeCode(&code)
            case .blockComment(let depth): takeComment(depth)
            case .longString(let hashes): takeLongString(hashes)
            }
        }
        return String(decoding: code, as: UTF8.self)
    }

    private mutating func takeCode(_ code: inout [UInt8]) {
        let start = position
        while position < line.count, !Self.isMark(line[position]) { position += 1 }
        if position > start { return code.append(contentsOf: line[start..<position]) }
        if isNext("//") {
            position = line.count
        } else if skip("/*") {
            state = .blockComment(depth: 1)
        } else if let hashes = hashesOfString() {
            position += hashes
            if skip("\"\"\"") {
                state = .longString(hashes: hashes)
            } else {
                position += 1
                skipString(hashes)
            }
            code.append(UInt8(ascii: " "))
        } else {
            code.append(line[position])
            position += 1
        }
    }

    /// Whether a comment or a string may begin with it.
    private static func isMark(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "#") || byte == UInt8(ascii: "\"")
    }

    private mutating func takeComment(_ depth: Int) {
        if skip("*/") {
            state = depth == 1 ? .code : .blockComment(depth: depth - 1)
        } else if skip("/*") {
            state = .blockComment(depth: depth + 1)
        } else {
            position += 1
        }
    }

    private mutating func takeLongString(_ hashes: Int) {
        if isNext("\"\"\"", hashes: hashes) {
            position += 3 + hashes
            state = .code
        } else {
            position += hashes == 0 && isNext("\\") ? 2 : 1
        }
    }

    /// Skips to behind the end of a string of one line, interpolations included.
    private mutating func skipString(_ hashes: Int) {
        while position < line.count {
            if isNext("\\", hashes: hashes), byte(at: position + 1 + hashes) == UInt8(ascii: "(") {
                position += hashes + 2
                skipInterpolation()
            } else if hashes == 0, isNext("\\") {
                position += 2
            } else if isNext("\"", hashes: hashes) {
                position += 1 + hashes
                return
            } else {
                position += 1
            }
        }
    }

    /// Skips to behind the parenthesis that ends an interpolation; strings within it may hold parentheses of their own.
    private mutating func skipInterpolation() {
        var depth = 1
        while position < line.count, depth > 0 {
            if let hashes = hashesOfString() {
                position += hashes + 1
                skipString(hashes)
            } else {
                if isNext("(") { depth += 1 }
                if isNext(")") { depth -= 1 }
                position += 1
            }
        }
    }

    /// How many `#` stand before the quotation mark that comes next; `nil` where no string begins.
    private func hashesOfString() -> Int? {
        var hashes = 0
        while byte(at: position + hashes) == UInt8(ascii: "#") { hashes += 1 }
        return byte(at: position + hashes) == UInt8(ascii: "\"") ? hashes : nil
    }

    private func byte(at index: Int) -> UInt8? { index < line.count ? line[index] : nil }

    /// Whether `text`, followed by so many `#`, comes next.
    private func isNext(_ text: StaticString, hashes: Int = 0) -> Bool {
        let length = text.utf8CodeUnitCount
        guard position + length + hashes <= line.count else { return false }
        return (0..<length).allSatisfy { line[position + $0] == text.utf8Start[$0] }
            && (0..<hashes).allSatisfy { line[position + length + $0] == UInt8(ascii: "#") }
    }

    private mutating func skip(_ text: StaticString) -> Bool {
        guard isNext(text) else { return false }
        position += text.utf8CodeUnitCount
        return true
    }
}
