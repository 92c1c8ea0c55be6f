// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// How far whoever holds a socket has come in its stream.
struct Progress: Equatable {
    /// How many bytes have been read.
    let read: UInt64
    /// How many have been written; the end of the stream counts as one.
    let written: UInt64

    /// Those in which the peer has ended its stream, and this end has not been reset (RFC 9293, section 3.3.2).
    private static let statesAfterTheEnd = [TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_CLOSING, TCP_TIME_WAIT].map {
        CInt($0)
    }

    /// Counted by somebody.
    init(read: UInt64, written: UInt64) {
        self.read = read
        self.written = written
    }

    /// Of a stream of which somebody has read or written something: no stream gets so far.
    static let neverReached = Progress(read: .max, written: .max)

    /// As the kernel counts for a TCP socket; `nil` where it does not say.
    ///
    /// Only two readings of one socket can be compared, while this end has not ended it: its handshake counts as well.
    init?(ofTCP number: CInt) {
        // `struct tcp_info` of include/uapi/linux/tcp.h; the C library's ends before these (Linux 4.1).
        let (stateOffset, acknowledgedOffset, receivedOffset, size) = (0, 120, 128, 136)
        var length = socklen_t(size)
        var (unread, unacknowledged): (CInt, CInt) = (0, 0)
        let counts = withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { buffer -> (UInt64, UInt64)? in
            guard getsockopt(number, CInt(IPPROTO_TCP), TCP_INFO, buffer.baseAddress, &length) == 0,
                length == socklen_t(size)
            else { return nil }
            // The kernel counts the end of the peer's stream as one byte received (`tcp_data_queue` in
            // net/ipv4/tcp_input.c).
            let state = buffer.loadUnaligned(fromByteOffset: stateOffset, as: UInt8.self)
            let end: UInt64 = Self.statesAfterTheEnd.contains(CInt(state)) ? 1 : 0
            return (
                buffer.loadUnaligned(fromByteOffset: acknowledgedOffset, as: UInt64.self),
                buffer.loadUnaligned(fromByteOffset: receivedOffset, as: UInt64.self) &- end
            )
        }
        guard let (acknowledged, received) = counts, ioctl(number, UInt(FIONREAD), &unread) == 0,
            ioctl(number, UInt(TIOCOUTQ), &unacknowledged) == 0
        else { return nil }
        self.init(read: received &- UInt64(unread), written: acknowledged &+ UInt64(unacknowledged))
    }
}
