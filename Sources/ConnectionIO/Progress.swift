// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import Glibc

/// How far whoever holds a socket has come in its stream.
struct Progress {
    /// How many bytes have been read.
    private let read: UInt64
    /// How many have been written; the end of the stream counts as one.
    private let written: UInt64
    /// Whether the stream is over for the kernel, by a reset or in order: what was not sent is gone, and whether the
    /// peer's end was counted before is not known.
    private var isReset = false
    /// Whether less may have been done than is counted: it is no beginning to count from.
    private(set) var isAhead = false

    /// The counts are asked for one after the other, until none has changed in between: on a line that is never quiet
    /// that is soon as well.
    static let mostTries = 8
    /// How long the first wait for a count that is ahead takes, in microseconds. All of them together take 25 ms, a few
    /// of the turns that the scheduler gives to others (`base_slice_ns`, 3 ms on most machines).
    static let shortestWait: UInt32 = 100

    /// Counted by somebody.
    init(read: UInt64, written: UInt64, isAhead: Bool = false) {
        self.read = read
        self.written = written
        self.isAhead = isAhead
    }

    /// As the kernel counts for a TCP socket; `nil` where it does not say.
    ///
    /// Only two readings of one socket can be compared, while this end has not ended it: its handshake counts as well.
    init?(ofTCP number: CInt) {
        guard var counts = Counts(of: number) else { return nil }
        for _ in 0..<Self.mostTries {
            var (unread, unacknowledged): (CInt, CInt) = (0, 0)
            guard ioctl(number, UInt(FIONREAD), &unread) == 0, ioctl(number, UInt(TIOCOUTQ), &unacknowledged) == 0,
                let present = Counts(of: number)
            else { return nil }
            if present == counts {
                read = counts.received &- counts.end &- UInt64(unread)
                written = counts.acknowledged &+ UInt64(unacknowledged)
                isReset = counts.state == TCP_CLOSE
                return
            }
            counts = present
        }
        return nil
    }

    /// How many bytes have come over a TCP socket, read or not, without the end of the peer's stream; with it, as the
    /// case may be, where the stream is over for the kernel. `nil` where the kernel does not say.
    static func received(ofTCP number: CInt) -> (count: UInt64, mayCountEnd: Bool)? {
        Counts(of: number).map { ($0.received &- $0.end, $0.state == TCP_CLOSE) }
    }

    /// What the holder of the socket has done on it since `start`.
    func touch(since start: Progress) -> Touch {
        // Less than nothing is read where bytes come between two questions.
        let (read, written) = (Int64(bitPattern: read &- start.read), Int64(bitPattern: written &- start.written))
        if written > 0 { return .touched }
        if isReset, read == 1 || written < 0 { return .unknown }
        return read > 0 ? .touched : .untouched
    }
}

/// What `struct tcp_info` of include/uapi/linux/tcp.h has beyond that of the C library (Linux 4.1).
private struct Counts: Equatable {
    let state: UInt8
    let acknowledged: UInt64
    let received: UInt64

    /// Those in which the peer has ended its stream, and this end has not been reset (RFC 9293, section 3.3.2).
    private static let statesAfterTheEnd = [TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_CLOSING, TCP_TIME_WAIT].map {
        UInt8($0)
    }

    /// The end of the peer's stream, which the kernel counts as one byte received (`tcp_data_queue` in
    /// net/ipv4/tcp_input.c).
    var end: UInt64 { Self.statesAfterTheEnd.contains(state) ? 1 : 0 }

    init?(of number: CInt) {
        let (stateOffset, acknowledgedOffset, receivedOffset, size) = (0, 120, 128, 136)
        var length = socklen_t(size)
        let counts = withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) {
            buffer -> (UInt8, UInt64, UInt64)? in
            guard getsockopt(number, CInt(IPPROTO_TCP), TCP_INFO, buffer.baseAddress, &length) == 0,
                length == socklen_t(size)
            else { return nil }
            return (
                buffer.loadUnaligned(fromByteOffset: stateOffset, as: UInt8.self),
                buffer.loadUnaligned(fromByteOffset: acknowledgedOffset, as: UInt64.self),
                buffer.loadUnaligned(fromByteOffset: receivedOffset, as: UInt64.self)
            )
        }
        guard let counts else { return nil }
        (state, acknowledged, received) = counts
    }
}
