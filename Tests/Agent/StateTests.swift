// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneConnection
import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Glibc
import Logging
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// What was logged.
final class Notes: Sendable {
    private struct Handler: LogHandler {
        let notes: Notes
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.info

        init(_ notes: Notes) { self.notes = notes }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { notes.texts.withLock { $0.append("\(event.message)") } }
    }

    private let texts = Lock<[String]>([])

    var all: [String] { texts.withLock { $0 } }
    var logger: Logger { Logger(label: "test") { _ in Handler(self) } }
}

/// State on disk.
@Suite(.timeLimit(.minutes(1))) @AgentQueue
struct StateTests {
    private let scratch = TemporaryDirectory()
    private let logger = Logger(label: "test")

    private var state: SavedState { SavedState(logger, in: "\(scratch.path)/state") }

    private func lines(_ file: LineFile) throws -> [String] {
        let reader = try file.reader()
        var lines: [String] = []
        while let line = reader.next() { lines.append(text(line)) }
        return lines
    }

    private func text(_ line: LineReader.Line) -> String {
        switch line {
        case .whole(let text): String(decoding: text, as: UTF8.self)
        case .damaged: "damaged"
        }
    }

    /// Lines as they are written.
    private func sealed(_ lines: String...) -> String {
        lines.map { String(decoding: SealedLine.line($0.utf8), as: UTF8.self) }.joined()
    }

    @Test(
        arguments: [
            (["STATE_DIRECTORY": "/a:/b", "HOME": "/h"], 1, "/a"), ([:], 0, "/var/lib/dialtone"),
            (["XDG_STATE_HOME": "/x", "HOME": "/h"], 1, "/x/dialtone"),
            (["XDG_STATE_HOME": "x", "HOME": "/h"], 1, "/h/.local/state/dialtone"), (["HOME": "h"], 1, nil),
            ([:], 1, nil),
        ] as [([String: String], uid_t, String?)])
    func `the directory is where the environment says`(environment: [String: String], user: uid_t, path: String?) {
        #expect(StatePath.standard(user: user) { environment[$0] } == path)
    }

    @Test func `a directory is one daemon's, and its own`() throws {
        let path = "\(scratch.path)/deep/er/state"
        let directory = try StateDirectory(path, logger)
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o700)
        do throws(SystemError) {
            _ = try StateDirectory(path, logger)
            Issue.record("two daemons have it")
        } catch {
            #expect(error.code == EWOULDBLOCK)
        }
        try directory.replace("file", with: Array("text".utf8))
        #expect(stat("\(path)/file", &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try directory.read("file", atMost: 10) == Array("text".utf8))
        #expect(try directory.read("other", atMost: 10) == nil)
    }

    @Test func `lines outlive their writer, and a damaged last one is left out`() throws {
        do {
            let file = try LineFile("log", in: state, limit: 1000)
            for number in 1...3 { try file.append(Array("line \(number)".utf8)) }
        }
        try scratch.write(sealed("line 1", "line 2") + "lin", to: "state/log")
        let file = try LineFile("log", in: state, limit: 1000)
        try file.append(Array("line 4".utf8))
        #expect(try lines(file) == ["line 1", "line 2", "line 4"])
        #expect(scratch.text("state/log") == sealed("line 1", "line 2", "line 4"))
    }

    @Test(arguments: [true, false]) func `two files are all the room there is`(onDisk: Bool) throws {
        let file = try LineFile("log", in: onDisk ? state : SavedState(), limit: 190)
        let early = try file.reader()
        for number in 100..<200 { try file.append(Array("line \(number)".utf8)) }
        let kept = try lines(file)
        #expect(kept.last == "line 199")
        #expect((12...22).contains(kept.count))
        #expect(kept == kept.sorted())
        #expect(early.next() == nil)
        guard onDisk else { return }
        #expect((scratch.text("state/log") ?? "").utf8.count + (scratch.text("state/log.1") ?? "").utf8.count <= 380)
    }

    @Test func `a reader sees the lines as they were, whatever is turned over meanwhile`() throws {
        let file = try LineFile("log", in: state, limit: 110)
        for number in 10..<16 { try file.append(Array("line \(number)".utf8)) }
        let reader = try file.reader()
        for number in 20..<60 { try file.append(Array("line \(number)".utf8)) }
        #expect(reader.next().map(text) == "line 10")
        for _ in 0..<5 { #expect(reader.next() != nil) }
        #expect(reader.next() == nil)
    }

    @Test func `lines are kept again when the file could not be turned over, or is gone`() throws {
        let file = try LineFile("log", in: state, limit: 20)
        try file.append(Array("line 1".utf8))
        // As after a rename that no new file followed.
        #expect(rename("\(scratch.path)/state/log", "\(scratch.path)/state/log.1") == 0)
        for number in 2...4 { try file.append(Array("line \(number)".utf8)) }
        #expect(try lines(file).last == "line 4")
        #expect(scratch.text("state/log")?.hasSuffix("line 4\n") == true)
    }

    @Test func `a line that was changed is told from the others`() throws {
        _ = try LineFile("log", in: state, limit: 1000)
        for place in 0..<16 {
            var bytes = Array(sealed("line 1").utf8)
            bytes[place < 15 ? place : 3] ^= 1
            try scratch.write(
                sealed("line 0") + String(decoding: bytes.dropLast(), as: UTF8.self) + "\n" + sealed("line 2"),
                to: "state/log")
            let read = try lines(LineFile("log", in: state, limit: 1000))
            #expect(read == ["line 0", "damaged", "line 2"], "byte \(place)")
        }
    }

    @Test func `what is no line costs no more than its length`() throws {
        let state = state
        let long = String(repeating: "x", count: 200_000)
        try scratch.write("\n\n\(long)\n" + sealed("line 1") + long + "\n" + sealed("line 2") + long, to: "state/log")
        let file = try LineFile("log", in: state, limit: 1 << 20)
        try file.append(Array("line 3".utf8))
        #expect(try lines(file) == ["damaged", "damaged", "damaged", "line 1", "damaged", "line 2", "line 3"])
        #expect(throws: SystemError.self) { try file.append(Array(long.utf8)) }
        try scratch.write(long + "\n", to: "state/log.1")
        #expect(try lines(LineFile("log", in: state, limit: 1 << 20)).first == "damaged")
    }

    @Test func `a file that is larger than it can have become is put aside, however large it is`() throws {
        let notes = Notes()
        let state = SavedState(notes.logger, in: "\(scratch.path)/state")
        try scratch.write("line 1\n", to: "state/log")
        try #require(truncate("\(scratch.path)/state/log", 1 << 40) == 0)
        let file = try LineFile("log", in: state, limit: 1000)
        try file.append(Array("line 2".utf8))
        #expect(try lines(file) == ["line 2"])
        var status = stat()
        #expect(stat("\(scratch.path)/state/damaged", &status) == 0 && status.st_size == 1 << 40)
        #expect(notes.all == ["a file of the state cannot be used and is put aside"])
    }

    @Test func `a pipe or a link in a file's place is put aside, and stops nobody`() throws {
        let state = state
        mkfifo("\(scratch.path)/state/log", 0o600)
        symlink("/etc/passwd", "\(scratch.path)/state/log.1")
        let file = try LineFile("log", in: state, limit: 1000)
        try file.append(Array("line 1".utf8))
        #expect(try lines(file) == ["line 1"])
        mkfifo("\(scratch.path)/state/other", 0o600)
        #expect(throws: SystemError.self) { try state.read("other", atMost: 100) }
        mkfifo("\(scratch.path)/state/other.new", 0o600)
        try state.replace("other", with: Array("text".utf8))
        #expect(try state.read("other", atMost: 100) == Array("text".utf8))
    }

    @Test func `what keepalives taught is written, and known to the next run`() throws {
        let home = try #require(NetworkIdentity("wifi 020000000001 192.168.1.0/24 -"))
        let line = "1000 \(home) 180000 180000 - 9 0"
        let text = "dialtone-keepalive-intervals 2\n\(line)\n"
        do {
            let state = state
            for file in [SealedLine.file(text), Array(text.utf8)] {
                try state.replace("keepalive-intervals", with: file)
                #expect(SavedIntervals(state, logger).learners.text == text)
            }
        }
        #expect(scratch.text("state/keepalive-intervals.damaged") == nil)
    }

    @Test func `what keepalives taught is written as soon as there is room, and that there is none is told once`()
        async throws
    {
        let notes = Notes()
        let kept = SavedIntervals(state, notes.logger, pause: .milliseconds(10))
        // Nothing can be written where a directory stands.
        let obstacle = "\(scratch.path)/state/keepalive-intervals.new"
        try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: true)
        kept.learners.onLesson?()
        try await eventually("it is told") { !notes.all.isEmpty }
        for _ in 1...3 { kept.save() }
        #expect(notes.all == ["what is learned of keepalives is not kept for now"])
        try FileManager.default.removeItem(atPath: obstacle)
        try await eventually("it is kept again") { notes.all.count == 2 }
        #expect(notes.all.last == "what is learned of keepalives is kept again")
        let written = try #require(scratch.text("state/keepalive-intervals"))
        #expect(Array(written.utf8) == SealedLine.file(kept.learners.text))
    }

    /// Such a line reads well: only its checksum tells.
    @Test func `one bit of what keepalives taught is wrong: the line is left out`() throws {
        let state = state
        let networks = ["0 wifi 020000000001", "0 wifi 020000000002"].map {
            "\($0) 192.168.1.0/24 - 180000 180000 - 9 0\n"
        }
        let heading = "dialtone-keepalive-intervals 2\n"
        var file = SealedLine.file(heading + networks.joined())
        let place = try #require(file.lastIndex(of: UInt8(ascii: "9")))
        file[place] ^= 1
        try state.replace("keepalive-intervals", with: file)
        #expect(SavedIntervals(state, logger).learners.text == heading + networks[0])
        #expect(scratch.text("state/keepalive-intervals.damaged") != nil)
    }

    @Test func `a damaged file is left aside, and its rest used`() throws {
        let state = state
        let good = "dialtone-keepalive-intervals 2\n0 wifi 020000000001 192.168.1.0/24 - 180000 180000 - 9 0\n"
        try state.replace("keepalive-intervals", with: Array("\(good)0 wifi 0200000".utf8))
        #expect(SavedIntervals(state, logger).learners.text == good)
        #expect(scratch.text("state/keepalive-intervals.damaged")?.hasSuffix("0 wifi 0200000") == true)
        #expect(scratch.text("state/keepalive-intervals") == nil)
    }

    @Test func `without a directory the daemon goes on in memory`() throws {
        try scratch.write("", to: "file")
        let state = SavedState(logger, in: "\(scratch.path)/file/state")
        let file = try LineFile("log", in: state, limit: 1000)
        try file.append(Array("line 1".utf8))
        #expect(try lines(file) == ["line 1"])
        try state.replace("keepalive-intervals", with: [])
    }
}
