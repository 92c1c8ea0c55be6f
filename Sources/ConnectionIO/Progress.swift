// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// How far whoever holds a socket has come in its stream.
struct Progress: Equatable {
    /// How many bytes have been read.
    let read: UInt64
    /// How many have been written; the end of the stream counts as one.
    let written: UInt64

    /// Counted by somebody.
    init(read: UInt64, written: UInt64) {
        self.read = read
        self.written = written
    }

    /// As the kernel counts for a TCP socket; `nil` where it does not say.
    ///
    /// Only two readings of one socket can be compared: its handshake counts as well. That the peer ended the stream
    /// counts as one byte received.
    init?(ofTCP number: CInt) {
        // `struct tcp_info` of include/uapi/linux/tcp.h; the C library's ends before these (Linux 4.1).
        let (acknowledgedOffset, receivedOffset, size) = (120, 128, 136)
        var length = socklen_t(size)
        var (unread, unacknowledged): (CInt, CInt) = (0, 0)
        let counts = withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { buffer -> (UInt64, UInt64)? in
            guard getsockopt(number, CInt(IPPROTO_TCP), TCP_INFO, buffer.baseAddress, &length) == 0,
                length == socklen_t(size)
            else { return nil }
            return (
                buffer.loadUnaligned(fromByteOffset: acknowledgedOffset, as: UInt64.self),
                buffer.loadUnaligned(fromByteOffset: receivedOffset, as: UInt64.self)
            )
        }
        guard let (acknowledged, received) = counts, ioctl(number, UInt(FIONREAD), &unread) == 0,
            ioctl(number, UInt(TIOCOUTQ), &unacknowledged) == 0
        else { return nil }
        self.init(read: received &- UInt64(unread), written: acknowledged &+ UInt64(unacknowledged))
    }
}
