// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink

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
