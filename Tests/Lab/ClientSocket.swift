// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Glibc

/// The client's end of a flow that it took.
final class ClientSocket {
    private let socket: OwnedDescriptor
    private var rest: [UInt8] = []

    init(_ socket: consuming OwnedDescriptor) {
        // A test that fails does not hang.
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        self.socket = socket
    }

    func send(_ bytes: [UInt8]) { _ = Glibc.send(socket.number, bytes, bytes.count, CInt(MSG_NOSIGNAL)) }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// The next so many bytes; `nil` where the stream ends before.
    func bytes(_ count: Int) -> [UInt8]? {
        while rest.count < count { if !receive() { return nil } }
        defer { rest.removeFirst(count) }
        return Array(rest.prefix(count))
    }

    /// What comes next, up to and with `end`; what came before the stream's end where that is sooner.
    func text(untilIncluding end: String) -> String {
        var text = ""
        while !text.hasSuffix(end), let byte = bytes(1) { text.append(Character(Unicode.Scalar(byte[0]))) }
        return text
    }

    private func receive() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(socket.number, &buffer, buffer.count, 0)
        rest += buffer.prefix(max(count, 0))
        return count > 0
    }
}
