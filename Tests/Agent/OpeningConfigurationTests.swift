// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConfiguration
import Foundation
import Testing

@testable import DialtoneAgent
@testable import DialtoneConnection

/// Openings as they are written in the files.
@Suite struct OpeningConfigurationTests {
    private let fixture: ConfigurationFixture

    init() throws { fixture = try ConfigurationFixture() }

    private static let connection = "[[connection]]\nname = 'office'\nremote = 'mqtt://h'\n"

    private func opening(_ line: String) throws -> Opening? {
        try fixture.write(Self.connection + line)
        return try fixture.load().configuration.connections.first?.settings.opening.flatMap { OpeningCheck($0).opening }
    }

    /// The errors of a connection with this line, which is line 4.
    private func errors(_ line: String) throws -> [String] {
        try fixture.write(Self.connection + line)
        return fixture.errors().map { $0.replacingOccurrences(of: "dialtone.toml:4:", with: "") }
    }

    @Test func `what is sent and expected is bytes with escapes`() throws {
        let opening = try opening(
            #"""
            opening = [
                { send = '\x10\x00MQTT', expect = '\x20\x02\x0?\?' },
                { send = "\\x82é", expect = { bytes = '\x?0', length = 5 }, overtaken_by = ['\x3?', '\x62'] },
            ]
            """#)
        #expect(
            opening
                == Opening([
                    .init(
                        send: [0x10, 0] + Array("MQTT".utf8),
                        answer: ExpectedAnswer(BytePattern([0x20, 2, 0, 0], mask: [0xFF, 0xFF, 0xF0, 0]))),
                    .init(
                        send: [0x82] + Array("é".utf8),
                        answer: ExpectedAnswer(.length(5), beginning: BytePattern([0], mask: [0x0F])),
                        overtakers: [BytePattern([0x30], mask: [0xF0]), BytePattern([0x62])]),
                ]))
    }

    @Test func `an answer ends by a delimiter or with a message`() throws {
        let opening = try opening(
            #"""
            [[connection.opening]]
            send = 'GET /ws HTTP/1.1\r\n\r\n'
            expect = { until = '\r\n\r\n', bytes = 'HTTP/1.1 101', contains = 'websocket' }
            [[connection.opening]]
            expect = { message = 'websocket', contains = 'auth_ok' }
            [[connection.opening]]
            send = 'done'
            """#)
        #expect(
            opening
                == Opening([
                    .init(
                        send: Array("GET /ws HTTP/1.1\r\n\r\n".utf8),
                        answer: ExpectedAnswer(
                            .delimiter(Array("\r\n\r\n".utf8)), beginning: BytePattern(Array("HTTP/1.1 101".utf8)),
                            content: Array("websocket".utf8))),
                    .init(answer: ExpectedAnswer(.message(.websocket), content: Array("auth_ok".utf8))),
                    .init(send: Array("done".utf8), answer: nil),
                ]))
    }

    @Test func `a secret comes from a file that others cannot read`() throws {
        try fixture.write("user\0secret\n", to: "secret", mode: 0o600)
        let line = "opening = [{ send_file = '\(fixture.directory)/secret', expect = 'OK' }]"
        #expect(try opening(line)?.steps.first?.send == Array("user\0secret\n".utf8))
        try fixture.write("other", to: "secret", mode: 0o640)
        #expect(try opening(line)?.steps.first?.send == Array("other".utf8))
        for (mode, text, problem) in [
            (0o604, "x", "can be read by everybody, or written by others than its owner; chmod g-w,o="),
            (0o660, "x", "can be read by everybody, or written by others than its owner; chmod g-w,o="),
            (0o600, "", "is empty"),
            (0o600, String(repeating: "x", count: 32_769), "is larger than 32768 bytes"),
        ] as [(mode_t, String, String)] {
            try fixture.write(text, to: "secret", mode: mode)
            #expect(try errors(line) == ["26: connection.opening.send_file: \"secret\" \(problem)"])
        }
    }

    @Test(arguments: [
        ("'/nowhere/at/all'", "\"/nowhere/at/all\" cannot be read: No such file or directory"),
        ("'secret'", "\"secret\" is not an absolute path"), ("'/dev/null'", "\"/dev/null\" is not a regular file"),
    ])
    func `a file that is none is told`(file: String, problem: String) throws {
        #expect(
            try errors("opening = [{ send_file = \(file), expect = 'OK' }]")
                == ["26: connection.opening.send_file: \(problem)"])
    }

    private static let noEscape =
        "a backslash in it is no escape; there are \\r, \\n, \\t, \\0, \\\\ and \\xNN with two "
        + "hexadecimal digits, and in what is expected \\? and \\x2? and \\x?0"

    @Test(arguments: [
        ("opening = 'login'", "11: connection.opening: expected [[opening]], found a string"),
        (
            "opening = [{ sent = 'x', expect = 'y' }]",
            #"14: connection.opening.sent: unknown key; did you mean "send"?"#
        ),
        (
            "opening = [{ send = 'x', expect = 7 }]",
            "35: connection.opening.expect: expected a string or a table, found an integer"
        ),
        ("opening = [{ send = 'swordfish\\q', expect = 'y' }]", "21: connection.opening.send: \(noEscape)"),
        ("opening = [{ send = 'x', expect = 'swordfish\\x??' }]", "35: connection.opening.expect: \(noEscape)"),
        ("opening = [{ send = '\\?', expect = 'y' }]", "21: connection.opening.send: \(noEscape)"),
        (
            "opening = [{ send = 'x', expect = { until = 'y', length = 3 } }]",
            "45: connection.opening.expect.until: the answer ends by length already"
        ),
        (
            "opening = [{ send = 'x', expect = { contains = 'y' } }]",
            "48: connection.opening.expect.contains: where the answer ends is not said: give length, until or message, "
                + "or bytes for all of it"
        ),
        (
            "opening = [{ send = 'x', expect = { message = 'sip' } }]",
            "47: connection.opening.expect.message: unknown value \"sip\"; one of mqtt, websocket"
        ),
        (
            "opening = [{ send = 'x', expect = { length = 20_000 } }]",
            "46: connection.opening.expect.length: 20000 is out of range; from 1 to 16384"
        ),
        ("opening = [{ send = 'x' }]", "12: connection.opening: no step expects an answer"),
        (
            "opening = [{ send = 'x', send_file = '/y', expect = 'z' }]",
            "38: connection.opening.send_file: the step says what it sends already, with send"
        ),
    ])
    func `what is wrong is told with its place and without what it holds`(line: String, error: String) throws {
        #expect(try errors(line) == [error])
    }

    @Test func `a CONNECT that promises more lets the keepalive be longer`() throws {
        let connect = #"opening = [{ send = '\x10\x0c\x00\x04MQTT\x04\x00\x00\xc8', expect = '\x20\x02\x0?\x00' }]"#
        #expect(try errors(connect + "\nkeepalive = { interval = '150s' }") == [])
        #expect(try errors("keepalive = { interval = '150s' }").count == 1)
    }
}
