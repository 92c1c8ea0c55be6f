// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Glibc

/// One end of a flow.
final class End: Sendable {
    private let socket: OwnedDescriptor

    init(_ socket: consuming OwnedDescriptor) { self.socket = socket }

    /// The next bytes, up to so many; waits for the first.
    func read(_ count: Int) -> String {
        var buffer = [UInt8](repeating: 0, count: count)
        let got = recv(socket.number, &buffer, count, 0)
        return got < 0 ? "error \(errno)" : String(decoding: buffer.prefix(got), as: UTF8.self)
    }

    func hangUp() { shutdown(socket.number, CInt(SHUT_RDWR)) }

    @discardableResult
    func write(_ text: String) -> Bool {
        send(socket.number, text, text.utf8.count, CInt(MSG_NOSIGNAL)) == text.utf8.count
    }

    /// Whether nobody has ended the stream.
    var isConnected: Bool {
        var byte: UInt8 = 0
        return recv(socket.number, &byte, 1, CInt(MSG_PEEK | MSG_DONTWAIT)) < 0 && errno == EAGAIN
    }
}

/// A flow that was taken.
struct TakenEnd {
    let reply: ConnectionsAPI.Take.Reply
    let socket: End

    @AgentQueue
    init(_ answer: VarlinkAnswer<ConnectionsAPI.Take>) throws {
        reply = answer.reply
        guard let socket = answer.descriptors.take(answer.reply.fileDescriptor) else {
            throw NothingCame(description: "no descriptor came")
        }
        self.socket = End(socket)
    }
}

extension VarlinkConnection {
    /// Takes a connection's flow.
    func take(_ name: String = "loop") async throws -> TakenEnd {
        let result: Result<VarlinkAnswer<ConnectionsAPI.Take>, VarlinkCallError> =
            try await answer("the flow") { done in
                callWithDescriptors(ConnectionsAPI.Take.self, .init(name: name), nil, done)
            }
        return try TakenEnd(result.get())
    }
}
