// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

/// A connection to a server on this machine, which is read as it comes.
final class LoopbackSocket {
    private let number: CInt

    init(_ port: UInt16) throws {
        number = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        // What does not come in this time does not come, and the test has failed.
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let number = number
        try #require(SocketAddress(.loopback, port: port).withPointer { connect(number, $0, $1) } == 0)
    }

    deinit { close(number) }

    func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Says that nothing more is sent.
    func shutDown() { shutdown(number, CInt(SHUT_WR)) }

    /// What comes next; empty for the end.
    func receive(atMost most: Int = 65_536) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: most)
        let count = recv(number, &bytes, most, 0)
        try #require(count >= 0, "nothing came: errno \(errno)")
        return Array(bytes.prefix(count))
    }

    /// Whether nothing is there to be read now.
    var isQuiet: Bool {
        var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 0
    }
}
