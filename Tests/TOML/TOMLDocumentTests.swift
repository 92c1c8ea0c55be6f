// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneTOML

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
    @Test func `every value knows its place and type`() throws {
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

    @Test(arguments: ["", "\n# nothing\n"]) func `an empty document is an empty table`(text: String) throws {
        #expect(try TOMLDocument.parse(text).isEmpty)
    }

    @Test(arguments: [
        ("a = 1\nb = ", 2, 5, "expected a value, found the end of the file"),
        ("a = 1\na = 2", 2, 1, "\"a\" is already defined, at line 1"),
        ("a = \"\u{1}\"", 1, 6, "U+0001 may not stand in a string"),
        ("a = \"é", 1, 7, "the string that begins at 1:5 has no end before the end of the file"),
        ("a = \"\\q\"", 1, 6, "a backslash before \"q\" is no escape; write \\\\ for a backslash, or use '…'"),
        ("a = \"\\uD800\"", 1, 6, "\"\\uD800\" is no character; it takes 4 hexadecimal digits"),
        ("[[a]]\n[a]", 2, 2, "\"a\" is already defined, at line 1"),
        ("a = {b = 1}\na.c = 2", 2, 1, "\"a\" is already defined, at line 1"),
        ("a = {b = 1}\n[a.c]", 2, 2, "\"a\" is already defined, at line 1"),
        ("a.b = 1\n[a]", 2, 2, "\"a\" is already defined, at line 1"),
        ("a = [1]\n[[a]]", 2, 3, "\"a\" is already defined, at line 1"),
        ("a = 9223372036854775808", 1, 5, "\"9223372036854775808\" is not a value; strings need quotes"),
        ("a = 2026-02-29", 1, 5, "\"2026-02-29\" is not a value; strings need quotes"),
        ("a = 1 b = 2", 1, 7, "expected the end of the line after a value, found \"b\""),
        ("a = {b = 1\n}", 1, 11, "expected \",\" or \"}\" on the line of an inline table, found the end of the line"),
        ("é = 1", 1, 1, "expected a key, found \"é\""),
        ("a\r= 1", 1, 2, "expected \"=\" after a key, found U+000D"),
        ("# \u{7F}", 1, 3, "U+007F may not stand in a comment"),
    ])
    func `what is no TOMLIs refused with the place`(text: String, line: Int, column: Int, message: String) throws {
        let error = try #require(throws: TOMLError.self) { try TOMLDocument.parse(text) }
        #expect(error == TOMLError(position: TOMLPosition(line: line, column: column), message: message))
    }

    /// Each ended the process that read it with toml++.
    @Test(arguments: [
        ("[\n", 1, 2, "expected a key, found the end of the line"),
        ("[é]", 1, 2, "expected a key, found \"é\""),
        ("a = [}", 1, 6, "expected a value, found \"}\""),
        (String(repeating: "a.", count: 20_000) + "a = 1", 1, 67, "nested more than 32 levels deep"),
        ("a = " + String(repeating: "[", count: 100_000), 1, 37, "nested more than 32 levels deep"),
        ("a = " + String(repeating: "{a = ", count: 100_000), 1, 165, "nested more than 32 levels deep"),
        // A header and a dotted key that are too deep together.
        (
            "[\(String(repeating: "a.", count: 16))a]\n\(String(repeating: "a.", count: 20))a = 1", 2, 31,
            "nested more than 32 levels deep"
        ),
    ])
    func `what cannot be read ends in an error`(text: String, line: Int, column: Int, message: String) throws {
        let error = try #require(throws: TOMLError.self) { try TOMLDocument.parse(text) }
        #expect(error == TOMLError(position: TOMLPosition(line: line, column: column), message: message))
    }

    /// The value that `text` stands for, in short.
    private func value(_ text: String) throws -> String {
        String(outline(try TOMLDocument.parse("a = \(text)")).joined(separator: "\n").dropFirst("a@1:1 = 1:5 ".count))
    }

    @Test(arguments: [
        ("+99", "integer 99"), ("-0", "integer 0"), ("1_000", "integer 1000"), ("0xDEAD_beef", "integer 3735928559"),
        ("0o755", "integer 493"), ("0b1101", "integer 13"), ("-9223372036854775808", "integer -9223372036854775808"),
        ("-0.01", "float -0.01"), ("5e+22", "float 5e+22"), ("6.626e-34", "float 6.626e-34"),
        ("1_0.0_1", "float 10.01"), ("-inf", "float -inf"), ("+nan", "float nan"),
        ("1979-05-27 07:32:00.5", "time 1979-05-27 07:32:00.5"),
        ("1979-05-27T00:32:00-07:00", "time 1979-05-27T00:32:00-07:00"), ("07:32:00", "time 07:32:00"),
        ("2024-02-29", "time 2024-02-29"), ("\"a\\tb\\U0001F600\"", "string a\tb\u{1F600}"),
        ("'a\\b'", "string a\\b"), ("\"\"\"\na\\\n   b\"\"\"\"", "string ab\""),
        ("'''\r\na\r\n''b'''", "string a\n''b"), ("\"\"\"\"\"\"", "string "),
    ])
    func `values of every notation`(text: String, expected: String) throws {
        #expect(try value(text) == expected)
    }

    @Test(arguments: [
        "01", "1__0", "_1", "1_", "0x", "0x-1", "+0x1", "0b2", "1.", ".1", "1.e5", "1e", "1e5.0", "01.5", "True", "nil",
        "1979-13-01", "1979-05-27T24:00:00Z", "1979-05-27T07:32", "1979-05-27T07:32:00+24:00", "07:60:00", "", "=",
        "{a = 1,}", "{,}", "[,]", "[1,,2]", "\"\n\"", "'''", "\"\"\"a\"\"", "\"\\x41\"", "'\u{0}'", "1 # \u{1}",
    ])
    func `what is no value`(text: String) {
        #expect(throws: TOMLError.self) { try value(text) }
    }
}
