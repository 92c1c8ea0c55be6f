// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneNetlink

/// The file: what is written is what is read, it is bounded, nobody else reads it, and damage is told of.
struct RecordingTests {
    private let folder = TemporaryDirectory()
    private var path: String { "\(folder.path)/recording" }

    @Test func `what is written is read in its order`() throws {
        let recorder = try recorder()
        let link = linkMessage(linkInfo(driver: "veth"))
        let odd = RecordingMark("costs", [.init("expensive", list: ["a,b", "c% d\u{1}", "ä"]), .init("empty", "")])
        link.withUnsafeBytes { recorder.received($0, on: .notices) }
        recorder.sent([1, 2, 3], on: .requests)
        recorder.note(odd)
        recorder.finish()
        recorder.note(odd)
        let recording = try Recording(contentsOf: path)
        #expect(recording.cutAt == nil)
        guard case .received(.notices, let bytes) = recording.entries[1].content,
            case .sent(.requests, let request) = recording.entries[2].content,
            case .mark(let mark) = recording.entries[3].content
        else { return #expect(Bool(false), "\(recording.entries)") }
        #expect(Array(bytes) == link)
        #expect(Array(request) == [1, 2, 3])
        #expect(mark == odd)
        #expect(mark.list("expensive") == ["a,b", "c% d\u{1}", "ä"])
        #expect(recording.entries.count == 4)
        let times = recording.entries.map(\.time)
        #expect(times == times.sorted() && times.allSatisfy { $0 > .zero && $0 <= BootClock.now() })
    }

    @Test func `it is for its user alone and follows no link`() throws {
        try recorder().finish()
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_mode == S_IFREG | 0o600)
        unlink(path)
        #expect(symlink("\(folder.path)/elsewhere", path) == 0)
        #expect(throws: SystemError("creating the recording \(path)", code: EEXIST)) { try recorder() }
        #expect(access("\(folder.path)/elsewhere", F_OK) != 0)
    }

    @Test func `the recording of the process before is kept`() throws {
        for word in ["first", "second", "third"] {
            let recorder = try recorder()
            recorder.note(RecordingMark(word))
            recorder.finish()
        }
        #expect(try marks(of: path).last?.word == "third")
        #expect(try marks(of: "\(path).old").last?.word == "second")
    }

    @Test func `it ends at its limit with a whole record and says so once`() throws {
        let ends = Lock<[Recorder.End]>([])
        let recorder = try Recorder(creating: path, program: "test", limit: 4096) { end in
            ends.withLock { $0.append(end) }
        }
        for number in 0..<200 { recorder.note(RecordingMark("number", [.init("is", number)])) }
        recorder.finish()
        #expect(ends.withLock { $0 } == [.full(bytes: 4096)])
        let recording = try Recording(contentsOf: path)
        #expect(recording.cutAt == nil)
        var status = stat()
        #expect(stat(path, &status) == 0 && (3900...4096).contains(status.st_size))
        #expect(try marks(of: path).last?["is"] == "\(recording.entries.count - 2)")
    }

    @Test func `a file system that refuses ends it and nothing else`() throws {
        let ends = Lock<[Recorder.End]>([])
        let full = OwnedDescriptor(open("/dev/full", O_WRONLY | O_CLOEXEC))
        let recorder = Recorder(to: full, program: "test") { end in ends.withLock { $0.append(end) } }
        // More than waits in memory: it is written, and refused, before the end.
        let record = [UInt8](repeating: 0, count: 1 << 20)
        for _ in 0..<3 { recorder.sent(record, on: .requests) }
        recorder.finish()
        #expect(ends.withLock { $0 } == [.refused(SystemError("writing the recording", code: ENOSPC))])
    }

    // MARK: Damage

    @Test func `a file may end anywhere`() throws {
        let whole = try sample()
        let count = try Recording(whole).entries.count
        for length in whole.indices {
            do throws(RecordingError) {
                let recording = try Recording(Array(whole[..<length]))
                #expect(recording.entries.count < count)
            } catch {
                #expect(error == .notARecording)
            }
        }
    }

    @Test func `what is no recording is refused with a reason`() throws {
        #expect(throws: RecordingError.notARecording) { try Recording([]) }
        #expect(throws: RecordingError.notARecording) { try Recording(Array("#!/bin/sh\nexit 0\n".utf8)) }
        let whole = try sample()
        var swapped = whole
        swapped.replaceSubrange(8..<12, with: whole[8..<12].reversed())
        #expect(throws: RecordingError.otherByteOrder) { try Recording(swapped) }
        var damaged = whole
        damaged[whole.count - 1] ^= 1
        #expect(throws: RecordingError.self) { try Recording(damaged) }
        #expect(throws: RecordingError.self) { try Recording(contentsOf: "/nonexistent") }
        #expect(throws: RecordingError.self) { try Recording(contentsOf: "/") }
        var newer: [UInt8] = []
        newer.putRecordingHeader(program: "test")
        newer.putPacket(
            .agent, timestamp: 1, direction: 6, protocol: 2, UnsafeRawBufferPointer(start: nil, count: 0),
            comment: "recording version=2 boot=1 wall=1")
        #expect(throws: RecordingError.tooNew(version: 2)) { try Recording(newer) }
    }

    @Test(arguments: seeds(4))
    func `damage of any kind is survived`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let whole = try sample()
        for _ in 0..<500 {
            var damaged = whole
            random.damage(&damaged, upTo: 6)
            guard let recording = try? Recording(damaged) else { continue }
            var kernel = ReplayedKernel(recording)
            for (position, entry) in recording.entries.enumerated() { kernel.take(entry, at: position) }
        }
    }

    // MARK: The kernel that is replayed

    @Test func `a kind that sysfs told is replayed`() throws {
        let recorder = try recorder()
        linkMessage().withUnsafeBytes { recorder.received($0, on: .notices) }
        recorder.noteDeviceType("wlan", of: "eth7")
        recorder.finish()
        let recording = try Recording(contentsOf: path)
        var kernel = ReplayedKernel(recording)
        for (position, entry) in recording.entries.enumerated() { kernel.take(entry, at: position) }
        #expect(kernel.snapshot.interfaces.values.map(\.kind) == [.wifi])
    }

    @Test func `a request is read back as the query it was made of`() throws {
        var query = RouteQuery(IPAddress(v6: 0x2001_0DB8 << 96 | 7))
        let plain = query
        (query.transport, query.port, query.mark, query.user) = (.udp, 5060, 7, 1000)
        (query.interfaceIndex, query.source) = (3, IPAddress(v6: 1))
        for query in [plain, query, RouteQuery(IPAddress(v4: 0xC000_0201))] {
            var bytes: [UInt8] = []
            NetlinkRequest(query).append(to: &bytes, sequence: 1)
            #expect(decoding(bytes) { RouteQuery($0) } == [query])
        }
    }

    @Test func `an interface number that no kernel gives is survived`() {
        var query = RouteQuery(IPAddress(v4: 0xC000_0201))
        query.interfaceIndex = -1
        #expect(PreparedQuery(query).query == query)
    }

    private func recorder() throws -> Recorder {
        try Recorder(creating: path, program: "test") { Issue.record("it ended: \($0)") }
    }

    private func marks(of path: String) throws -> [RecordingMark] {
        try Recording(contentsOf: path).entries.compactMap { entry in
            guard case .mark(let mark) = entry.content else { return nil }
            return mark
        }
    }

    /// A small recording of all kinds of records.
    private func sample() throws -> [UInt8] {
        let recorder = try recorder()
        var requests: [UInt8] = []
        NetlinkRequest(RouteQuery(IPAddress(v4: 0xC000_0201))).append(to: &requests, sequence: 7)
        recorder.sent(requests, on: .requests)
        errorMessage(ENETUNREACH, quoting: requests, isCapped: true, explanation: nil, sequence: 7).withUnsafeBytes {
            recorder.received($0, on: .requests)
        }
        linkMessage(linkInfo(driver: "veth")).withUnsafeBytes { recorder.received($0, on: .notices) }
        recorder.noteDeviceType("wlan", of: "wlan0")
        recorder.noteReread(isCoherent: true)
        recorder.finish()
        defer { unlink(path) }
        let file = OwnedDescriptor(open(path, O_RDONLY))
        var bytes = [UInt8](repeating: 0, count: 65_536)
        return Array(bytes[..<read(file.number, &bytes, bytes.count)])
    }
}
