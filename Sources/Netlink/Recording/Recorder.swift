// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
internal import Dispatch
internal import Glibc

/// Writes what passes between the kernel and the agent into a file, so that a day in the field can be replayed.
///
/// Nothing of it happens on the agent's queue but a copy into memory: a queue of its own writes, which a slow disk may
/// hold up. What is in memory goes to the file ``delay`` after the first record of it, and earlier when it is much;
/// that is all a crash or a `kill -9` can lose. Nothing is synced: a loss of power loses what the kernel had not
/// written yet.
///
/// Any thread may call any method.
package final class Recorder: Sendable {
    /// Why a recording ended by itself.
    package enum End: Error, Hashable, Sendable, CustomStringConvertible {
        /// It has the size that it may have.
        case full(bytes: Int)
        /// The file takes the records slower than they come.
        case behind(bytes: Int)
        /// The file system refused a write.
        case refused(SystemError)

        /// What happened.
        package var description: String {
            switch self {
            case .full(let bytes): "it has reached its limit of \(bytes >> 20) MiB"
            case .behind(let bytes): "the file takes records slower than they come: \(bytes >> 20) MiB wait"
            case .refused(let error): "\(error)"
            }
        }
    }

    /// The largest file. An event with one watched host takes about 2 KiB, with a hundred 50 KiB, so this is a busy day
    /// of the one and an hour of a bad network with the other; it compresses to a tenth, which can be mailed.
    package static let defaultLimit = 256 << 20

    /// How long a record may wait in memory.
    static let delay = Duration.milliseconds(200)

    /// A buffer of this size goes to the file at once.
    private static let buffer = 256 * 1024

    /// What may wait for a slow disk. A second of the greatest storm there is (a hundred evaluations of a thousand
    /// hosts).
    private static let mostWaiting = 32 << 20

    private struct State {
        var records: [UInt8] = []
        var size = 0
        var waiting = 0
        var isFlushDue = false
        /// Nothing more is taken.
        var hasEnded = false
        /// Why is told.
        var isEndTold = false
    }

    private let state = Lock(State())
    private let file: OwnedDescriptor
    private let writer = DispatchQueue(label: "org.dialtone.recorder")
    private let limit: Int
    private let onEnd: @Sendable (End) -> Void
    /// What the clocks showed at the beginning. Every timestamp is the wall clock's reading then, plus what the boot
    /// clock counted since: nobody who sets the wall clock disorders a recording.
    private let boot: Duration
    private let wall: Duration

    /// Begins a recording in a new file, which its user alone may read. A regular file of that name, the recording of a
    /// process before this one, is kept as `NAME.old`; anything else of that name is left alone and refused. No
    /// symbolic link is followed to the file.
    ///
    /// - Parameters:
    ///   - program: name and version of the program, for the file's header.
    ///   - onEnd: is called once if the recording ends by itself, on any thread.
    /// - Throws: the file system's refusal.
    package convenience init(
        creating path: String, program: String, limit: Int = defaultLimit, onEnd: @escaping @Sendable (End) -> Void
    ) throws(SystemError) {
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG { rename(path, "\(path).old") }
        let number = try retryingInterrupts("creating the recording \(path)") {
            open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        self.init(to: OwnedDescriptor(number), program: program, limit: limit, onEnd: onEnd)
    }

    /// Begins a recording in a file that is open.
    init(
        to file: consuming OwnedDescriptor, program: String, limit: Int = defaultLimit,
        onEnd: @escaping @Sendable (End) -> Void
    ) {
        self.file = file
        self.limit = limit
        self.onEnd = onEnd
        boot = BootClock.now()
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        wall = .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        append { $0.putRecordingHeader(program: program) }
        note(
            RecordingMark(
                "recording",
                [
                    .init("version", RecordingFormat.version), .init("boot", boot.nanoseconds),
                    .init("wall", wall.nanoseconds),
                ]))
    }

    /// Records a mark.
    package func note(_ mark: RecordingMark) {
        // A message of no meaning (NLMSG_NOOP) for the comment to stand at.
        let header: (UInt32, UInt16, UInt16, UInt32, UInt32) = (16, 1, 0, 0, 0)
        withUnsafeBytes(of: header) { bytes in
            put(.agent, RecordingFormat.toUser, RecordingFormat.userSocket, bytes, comment: mark.description)
        }
    }

    /// Records a datagram of the kernel's.
    func received(_ datagram: UnsafeRawBufferPointer, on channel: RecordingChannel) {
        put(channel, RecordingFormat.toUser, RecordingFormat.route, datagram)
    }

    /// Records requests that were sent in one system call.
    func sent(_ requests: [UInt8], on channel: RecordingChannel) {
        requests.withUnsafeBytes { put(channel, RecordingFormat.toKernel, RecordingFormat.route, $0) }
    }

    /// Writes what is still in memory and ends the recording. When it returns the file is whole. A recorder that is
    /// dropped without it loses what was in memory.
    package func finish() {
        let rest = state.withLock { state in
            state.hasEnded = true
            defer { state.records = [] }
            return state.records
        }
        writer.sync { write(rest) }
    }

    private func put(
        _ channel: RecordingChannel, _ direction: UInt16, _ family: UInt16, _ bytes: UnsafeRawBufferPointer,
        comment: String? = nil
    ) {
        let time = wall + (BootClock.now() - boot)
        let timestamp = UInt64(clamping: time.nanoseconds)
        append { records in
            records.putPacket(
                channel, timestamp: timestamp, direction: direction, protocol: family, bytes, comment: comment)
        }
    }

    private func append(_ record: (inout [UInt8]) -> Void) {
        let end: End? = state.withLock { state in
            guard !state.hasEnded else { return nil }
            let before = state.records.count
            record(&state.records)
            state.size += state.records.count - before
            if state.size > limit || state.waiting > Self.mostWaiting {
                // The record that does not fit any more is not begun: the file ends with a whole one.
                state.records.removeSubrange(before...)
                (state.hasEnded, state.isEndTold) = (true, true)
                flush(&state)
                return state.size > limit ? .full(bytes: limit) : .behind(bytes: state.waiting)
            }
            if state.records.count >= Self.buffer {
                flush(&state)
            } else if !state.isFlushDue {
                state.isFlushDue = true
                writer.asyncAfter(deadline: .now() + .milliseconds(Int(Self.delay.milliseconds))) { [weak self] in
                    guard let self else { return }
                    self.state.withLock { flush(&$0) }
                }
            }
            return nil
        }
        if let end { onEnd(end) }
    }

    /// Hands what is in memory to the writer.
    private func flush(_ state: inout State) {
        state.isFlushDue = false
        guard !state.records.isEmpty else { return }
        let records = state.records
        state.records = []
        state.waiting += records.count
        writer.async { [weak self] in
            guard let self else { return }
            write(records)
            self.state.withLock { $0.waiting -= records.count }
        }
    }

    /// Writes to the file, on the writer's queue.
    private func write(_ records: [UInt8]) {
        var rest = records[...]
        while !rest.isEmpty {
            do throws(SystemError) {
                let count = try retryingInterrupts("writing the recording") {
                    rest.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
                }
                rest = rest.dropFirst(count)
            } catch {
                // Also of what was taken before the end: it is missing.
                let isFirst = state.withLock { state in
                    defer { (state.hasEnded, state.isEndTold) = (true, true) }
                    return !state.isEndTold
                }
                if isFirst { onEnd(.refused(error)) }
                return
            }
        }
    }
}

extension Duration {
    /// Whole nanoseconds, rounded toward zero.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
