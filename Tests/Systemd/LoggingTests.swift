// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import Testing

@testable import DialtoneSystemd

private func event(
    _ message: Logger.Message, _ metadata: Logger.Metadata? = nil, level: Logger.Level = .notice
) -> LogEvent {
    LogEvent(level: level, message: message, metadata: metadata, source: nil, file: "f", function: "f", line: 1)
}

/// The journal's socket has one path. So the calling thread gets an empty /run that nobody else sees, with a socket of
/// its own at that path, which is returned. For exit tests, as root.
private func journalOfItsOwn() throws -> CInt {
    // <sched.h> declares unshare(2) only for _GNU_SOURCE, which Swift's module of the C library is not built with.
    let unshare = unsafeBitCast(dlsym(nil, "unshare"), to: (@convention(c) (CInt) -> CInt).self)
    let newMountNamespace: CInt = 0x20000
    try #require(unshare(newMountNamespace) == 0)
    try #require(mount("none", "/", nil, UInt(MS_REC | MS_PRIVATE), nil) == 0)
    try #require(mount("tmpfs", "/run", "tmpfs", 0, nil) == 0)
    try FileManager.default.createDirectory(atPath: "/run/systemd/journal", withIntermediateDirectories: true)
    let journal = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
    try #require(withUnixAddress("/run/systemd/journal/socket") { bind(journal, $0, $1) } == 0)
    return journal
}

struct LogLineTests {
    @Test func `values follow the message in the order of their keys`() {
        let line = LogLine(event("redialling", ["epoch": "7", "connection": "office"]), [:], nil)
        #expect(line.text == "redialling connection=office epoch=7")
    }

    @Test func `the nearer source of a value wins`() {
        let provider = Logger.MetadataProvider { ["a": "provider", "b": "provider", "c": "provider"] }
        let line = LogLine(event("m", ["c": "event"]), ["b": "handler", "c": "handler"], provider)
        #expect(line.text == "m a=provider b=handler c=event")
    }

    @Test(arguments: [
        ("two words", "m k=\"two words\""), ("", "m k=\"\""), ("a=b", "m k=\"a=b\""),
        ("say \"a\"", "m k=\"say \\\"a\\\"\""),
        ("1\n2\u{1B}[2J", "m k=1\\u{a}2\\u{1b}[2J"), ("\u{9B}", "m k=\\u{9b}"), ("Grüße", "m k=Grüße"),
    ])
    func `a value ends where it seems to`(value: String, text: String) {
        #expect(LogLine(event("m", ["k": "\(value)"]), [:], nil).text == text)
    }

    @Test func `a message cannot forge a line`() {
        #expect(LogLine(event("refused: a\nerror: b"), [:], nil).text == "refused: a\\u{a}error: b")
    }
}

struct JournalLogHandlerTests {
    @Test func `an entry has a field for each value`() {
        let handler = JournalLogHandler(identifier: "dialtoned", label: "dialer", level: .info)
        let line = LogLine(event("ready", ["connection": "office", "local-address": "192.0.2.7"]), [:], nil)
        #expect(
            handler.entry(.notice, line) == [
                "MESSAGE=ready connection=office local-address=192.0.2.7", "PRIORITY=5", "SYSLOG_IDENTIFIER=dialtoned",
                "LOGGER=dialer", "DIALTONE_CONNECTION=office", "DIALTONE_LOCAL_ADDRESS=192.0.2.7",
            ])
    }

    @Test func `the kind of an entry is a field and not part of the text`() {
        let handler = JournalLogHandler(identifier: "i", label: "l", level: .info)
        var lines: [String] = []
        for kind in [JournalMessage.ready, .failed] {
            let line = LogLine(event("m", [JournalMessage.key: "\(kind.rawValue)", "k": "v"]), [:], nil)
            #expect(line.text == "m k=v")
            lines += handler.entry(.notice, line).filter { $0.hasPrefix("MESSAGE_ID=") }
        }
        #expect(lines == [JournalMessage.ready, .failed].map { "MESSAGE_ID=\($0.rawValue)" })
    }

    @Test(arguments: [
        (Logger.Level.trace, 7), (.debug, 7), (.info, 6), (.notice, 5), (.warning, 4), (.error, 3), (.critical, 2),
    ])
    func `levels are those of syslog`(level: Logger.Level, priority: Int) {
        let handler = JournalLogHandler(identifier: "i", label: "l", level: .trace)
        #expect(handler.entry(level, LogLine(event("m"), [:], nil)).contains("PRIORITY=\(priority)"))
    }

    @Test(arguments: [
        ("connection", "DIALTONE_CONNECTION"), ("next-attempt.at", "DIALTONE_NEXT_ATTEMPT_AT"),
        ("message", "DIALTONE_MESSAGE"), ("_private", "DIALTONE__PRIVATE"), ("2nd", "DIALTONE_2ND"),
        ("größe", "DIALTONE_GR_SSE"), ("", "DIALTONE_"),
        (String(repeating: "a", count: 70), "DIALTONE_" + String(repeating: "A", count: 55)),
    ])
    func `keys become names that the journal takes`(key: String, name: String) {
        #expect(JournalLogHandler.fieldName(key) == name)
    }
}

extension JournalLogHandlerTests {
    @Test func `an entry reaches the journal`() async throws {
        guard geteuid() == 0 else { try Test.cancel("only root can mount a /run of its own") }
        await #expect(processExitsWith: .success) {
            let journal = try journalOfItsOwn()
            JournalLogHandler(identifier: "dialtoned", label: "l", level: .info).log(event: event("a", ["k": "v w"]))
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(journal, &buffer, buffer.count, CInt(MSG_DONTWAIT))
            let lines = String(decoding: buffer[..<max(0, count)], as: UTF8.self).split(separator: "\n")
            #expect(
                lines == [
                    "MESSAGE=a k=\"v w\"", "PRIORITY=5", "SYSLOG_IDENTIFIER=dialtoned", "LOGGER=l", "DIALTONE_K=v w",
                ])
        }
    }

    @Test func `what the journal refuses goes to the standard error`() async throws {
        guard geteuid() == 0 else { try Test.cancel("only root can mount a /run of its own") }
        let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
            close(try journalOfItsOwn())
            JournalLogHandler(identifier: "dialtoned", label: "l", level: .info).log(event: event("lost"))
        }
        #expect(String(decoding: result.standardErrorContent, as: UTF8.self).contains("dialtoned: lost\n"))
    }
}

struct StandardErrorLogHandlerTests {
    @Test func `a line begins with its level`() {
        let handler = StandardErrorLogHandler(level: .info, hasTime: false)
        #expect(handler.text(of: event("ready", ["epoch": "7"])) == "notice: ready epoch=7")
    }

    @Test func `at a terminal it begins with the time of day`() throws {
        let handler = StandardErrorLogHandler(level: .info, hasTime: true)
        let time = /\d\d:\d\d:\d\d\.\d\d\d notice: ready/
        #expect(try time.wholeMatch(in: handler.text(of: event("ready"))) != nil)
    }
}

struct LogOutputTests {
    @Test func `the journal is used when the standard error leads there`() async {
        await #expect(processExitsWith: .success) {
            var status = stat()
            fstat(STDERR_FILENO, &status)
            setenv("JOURNAL_STREAM", "\(status.st_dev):\(status.st_ino)", 1)
            #expect(LogOutput.detect() == .journal)
        }
    }

    @Test func `a redirected standard error is written to`() async {
        await #expect(processExitsWith: .success) {
            var status = stat()
            fstat(STDERR_FILENO, &status)
            setenv("JOURNAL_STREAM", "\(status.st_dev):\(status.st_ino)", 1)
            var ends: [CInt] = [0, 0]
            pipe(&ends)
            dup2(ends[1], STDERR_FILENO)
            #expect(LogOutput.detect() == .standardError(hasTime: false))
            unsetenv("JOURNAL_STREAM")
            #expect(LogOutput.detect() == .standardError(hasTime: false))
        }
    }
}

@Test func `a log that nobody reads keeps nobody waiting`() throws {
    var ends: [CInt] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { ends.forEach { close($0) } }
    // Three times what a pipe holds.
    for _ in 0..<200 { writeWithoutWaiting(String(repeating: "x", count: 1000), to: ends[1]) }
    var unread: CInt = 0
    try #require(ioctl(ends[0], UInt(FIONREAD), &unread) == 0)
    #expect(unread > 0 && unread % 1001 == 0, "whole lines, or none")
}
