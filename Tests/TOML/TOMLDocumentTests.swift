// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TOML

/// A line for each node: its place, its key with the key's place, and its value.
private func outline(_ entries: [TOMLEntry], _ indent: String = "") -> [String] {
    entries.flatMap { entry in
        outline(entry.node, "\(indent)\(entry.key)@\(entry.keyPosition.line):\(entry.keyPosition.column) = ", indent)
    }
}

private func outline(_ node: TOMLNode, _ head: String, _ indent: String) -> [String] {
    let line = "\(head)\(node.position.line):\(node.position.column) "
    return switch node.value {
    case .string(let value): [line + "string \(value)"]
    case .integer(let value): [line + "integer \(value)"]
    case .float(let value): [line + "float \(value)"]
    case .boolean(let value): [line + "boolean \(value)"]
    case .time(let value): [line + "time \(value)"]
    case .array(let members): [line + "array"] + members.flatMap { outline($0, indent + "  - ", indent + "  ") }
    case .table(let entries): [line + "table"] + outline(entries, indent + "  ")
    }
}

struct TOMLDocumentTests {
    @Test func everyValueKnowsItsPlaceAndType() throws {
        let text = """
            title = "é \\u00e9"
            count = 0x10
              ratio = 1.5
            on = true
            since = 2026-01-31T10:00:00Z
            day = 2026-01-31
            list = [1, "two",
              { three = 3 }]

            [network]
            expensive = []

            [[connection]]
            name = 'a'
            [[connection]]
            keepalive.interval = "1s"
            """
        #expect(
            outline(try TOMLDocument.parse(text)) == [
                "title@1:1 = 1:9 string é é",
                "count@2:1 = 2:9 integer 16",
                "ratio@3:3 = 3:11 float 1.5",
                "on@4:1 = 4:6 boolean true",
                "since@5:1 = 5:9 time 2026-01-31T10:00:00Z",
                "day@6:1 = 6:7 time 2026-01-31",
                "list@7:1 = 7:8 array",
                "  - 7:9 integer 1",
                "  - 7:12 string two",
                "  - 8:3 table",
                "    three@8:5 = 8:13 integer 3",
                "network@10:2 = 10:1 table",
                "  expensive@11:1 = 11:13 array",
                "connection@13:3 = 13:1 array",
                "  - 13:1 table",
                "    name@14:1 = 14:8 string a",
                "  - 15:1 table",
                "    keepalive@16:1 = 16:1 table",
                "      interval@16:11 = 16:22 string 1s",
            ])
    }

    @Test(arguments: ["", "\n# nothing\n"]) func anEmptyDocumentIsAnEmptyTable(text: String) throws {
        #expect(try TOMLDocument.parse(text).isEmpty)
    }

    // The library's words change with its versions; that they are handed on shows in their beginning.
    @Test(arguments: [
        ("a = 1\nb = ", 2, 5, "Error while parsing key-value pair: "),
        ("a = 1\na = 2", 2, 5, "Error while parsing key-value pair: cannot redefine existing integer 'a'"),
        ("a = \"\u{1}\"", 1, 6, "Error while parsing string: "),
        ("[[a]]\n[a]", 2, 1, "Error while parsing table header: cannot redefine existing array 'a'"),
        ("a = 9223372036854775808", 1, 24, "Error while parsing decimal integer: "),
    ])
    func whatIsNoTOMLIsRefusedWithThePlace(text: String, line: Int, column: Int, message: String) throws {
        let error = try #require(throws: TOMLError.self) { try TOMLDocument.parse(text) }
        #expect(error.position == TOMLPosition(line: line, column: column))
        #expect(error.message.hasPrefix(message), "\(error.message)")
    }

    @Test func nestingHasALimit() {
        let text = "a = " + String(repeating: "[", count: 100_000)
        #expect(throws: TOMLError.self) { try TOMLDocument.parse(text) }
    }
}
