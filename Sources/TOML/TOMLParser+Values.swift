// SPDX-License-Identifier: Apache-2.0

extension TOMLParser {
    /// A value, which is as deep as `depth` if it is a table or an array.
    mutating func value(depth: Int) throws(TOMLError) -> TOMLNode.Value {
        switch scanner.next {
        case .quote: return .string(scanner.isAt("\"\"\"") ? try longBasicString() : try basicString())
        case .apostrophe: return .string(scanner.isAt("'''") ? try longLiteralString() : try literalString())
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "{"): return .table(try inlineTable(depth: depth))
        default: return try bareValue()
        }
    }

    private mutating func array(depth: Int) throws(TOMLError) -> [TOMLNode] {
        try checkDepth(depth, at: scanner.position)
        scanner.take()
        var members: [TOMLNode] = []
        while true {
            try skipLines()
            if scanner.skip(UInt8(ascii: "]")) { return members }
            let position = scanner.position
            members.append(TOMLNode(value: try value(depth: depth + 1), position: position))
            try skipLines()
            if scanner.skip(UInt8(ascii: ",")) { continue }
            guard scanner.skip(UInt8(ascii: "]")) else { throw expected("\",\" or \"]\" in an array") }
            return members
        }
    }

    private mutating func inlineTable(depth: Int) throws(TOMLError) -> [TOMLEntry] {
        try checkDepth(depth, at: scanner.position)
        // Only here is it added to: once it is closed it is a value like any other.
        let table = TOMLTable(.header, at: scanner.position, depth: depth)
        scanner.take()
        scanner.skipBlanks()
        if scanner.skip(UInt8(ascii: "}")) { return [] }
        while true {
            try keyAndValue(in: table)
            scanner.skipBlanks()
            if scanner.skip(UInt8(ascii: "}")) { return table.entries }
            guard scanner.skip(UInt8(ascii: ",")) else {
                throw expected("\",\" or \"}\" on the line of an inline table")
            }
        }
    }

    // MARK: - Without quotes

    /// A boolean, a number, a date or a time.
    private mutating func bareValue() throws(TOMLError) -> TOMLNode.Value {
        let start = scanner
        var text = takeWord()
        guard !text.isEmpty else { throw expected("a value") }
        // A date and a time may have a space between them.
        if text.utf8.count == 10, isDate(text), scanner.next == .space, scanner.peek(1)?.isDigit == true {
            scanner.take()
            text += " \(takeWord())"
        }
        if let value = scalar(text) { return value }
        throw error("\"\(text.prefix(80))\" is not a value; strings need quotes", at: start.position)
    }

    private mutating func takeWord() -> String {
        scanner.takeWhile {
            $0.isBareKey || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: ":")
        }
    }

    private func scalar(_ text: String) -> TOMLNode.Value? {
        switch text {
        case "true": .boolean(true)
        case "false": .boolean(false)
        case "inf", "+inf": .float(.infinity)
        case "-inf": .float(-.infinity)
        case "nan", "+nan", "-nan": .float(.nan)
        default:
            integer(text).map { .integer($0) } ?? float(text).map { .float($0) } ?? (isTime(text) ? .time(text) : nil)
        }
    }

    private func integer(_ text: String) -> Int64? {
        let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)]
        if let (prefix, radix) = prefixes.first(where: { text.hasPrefix($0.0) }) {
            let digits = text.utf8.dropFirst(prefix.utf8.count)
            // Int64(_:radix:) would take a sign.
            guard let first = digits.first, first != UInt8(ascii: "-"), first != UInt8(ascii: "+") else { return nil }
            return joined(digits) { $0.isHexDigit }.flatMap { Int64($0, radix: radix) }
        }
        let unsigned = withoutSign(text.utf8[...])
        return isPlainNumber(unsigned) ? joined(text.utf8[...]) { $0.isDigit }.flatMap { Int64($0) } : nil
    }

    private func float(_ text: String) -> Double? {
        let parts = text.utf8.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 | 0x20 == UInt8(ascii: "e") }
        let mantissa = withoutSign(parts[0]).split(
            separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard isPlainNumber(mantissa[0]), mantissa.count == 2 || parts.count == 2 else { return nil }
        if mantissa.count == 2, !isDigits(mantissa[1]) { return nil }
        if parts.count == 2, !isDigits(withoutSign(parts[1])) { return nil }
        return Double(String(decoding: text.utf8.filter { $0 != UInt8(ascii: "_") }, as: UTF8.self))
    }

    private func withoutSign(_ text: Substring.UTF8View) -> Substring.UTF8View {
        text.first == UInt8(ascii: "-") || text.first == UInt8(ascii: "+") ? text.dropFirst() : text.dropFirst(0)
    }

    /// Digits with single underscores between them.
    private func isDigits(_ text: Substring.UTF8View) -> Bool { joined(text) { $0.isDigit } != nil }

    /// Such digits, the first of which is no zero if there are more.
    private func isPlainNumber(_ text: Substring.UTF8View) -> Bool {
        isDigits(text) && (text.first != UInt8(ascii: "0") || text.count == 1)
    }

    /// The text without underscores, each of which must stand between two digits; a sign may come first.
    private func joined(_ text: Substring.UTF8View, _ isDigit: (UInt8) -> Bool) -> String? {
        let groups = withoutSign(text).split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        guard groups.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isDigit) }) else { return nil }
        return String(decoding: text.filter { $0 != UInt8(ascii: "_") }, as: UTF8.self)
    }

    // MARK: - Dates and times (RFC 3339)

    private func isTime(_ text: String) -> Bool {
        guard text.utf8.count > 10 else { return isDate(text) || isClock(text[...]) }
        guard isDate(String(text.prefix(10))) else { return isClock(text[...]) }
        let rest = text.dropFirst(10)
        guard let separator = rest.first, "Tt ".contains(separator) else { return false }
        let clock = rest.dropFirst()
        if clock.last == "Z" || clock.last == "z" { return isClock(clock.dropLast()) }
        if let sign = clock.suffix(6).first, sign == "+" || sign == "-" {
            return isClock(clock.dropLast(6)) && numbers(in: clock.suffix(5), "00:00").map { isHour($0) } ?? false
        }
        return isClock(clock)
    }

    private func isDate(_ text: String) -> Bool {
        guard let date = numbers(in: text[...], "0000-00-00"), (1...12).contains(date[1]) else { return false }
        let isLeap = date[0].isMultiple(of: 4) && (!date[0].isMultiple(of: 100) || date[0].isMultiple(of: 400))
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return (1...days[date[1] - 1]).contains(date[2])
    }

    private func isClock(_ text: Substring) -> Bool {
        // A leap second is a second like any other.
        guard let clock = numbers(in: text.prefix(8), "00:00:00"), isHour(clock), clock[2] <= 60 else { return false }
        let fraction = text.utf8.dropFirst(8)
        return fraction.isEmpty
            || fraction.first == UInt8(ascii: ".") && fraction.count > 1 && fraction.dropFirst().allSatisfy(\.isDigit)
    }

    private func isHour(_ clock: [Int]) -> Bool { clock[0] < 24 && clock[1] < 60 }

    /// The numbers in a text that has a digit for each zero of `pattern` and is the same otherwise.
    private func numbers(in text: Substring, _ pattern: String) -> [Int]? {
        let text = text.utf8
        guard text.count == pattern.utf8.count,
            zip(text, pattern.utf8).allSatisfy({ $1 == UInt8(ascii: "0") ? $0.isDigit : $0 == $1 })
        else { return nil }
        return text.split { !$0.isDigit }.compactMap { Int(String(decoding: $0, as: UTF8.self)) }
    }
}

extension UInt8 {
    fileprivate var isHexDigit: Bool { isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self | 0x20) }
}
