// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
internal import DialtoneRelayMessages
internal import Glibc

/// A flow that an earlier process left and no connection claims: as a rule, one whose place another took while a client
/// had it.
@AgentQueue
package enum UnclaimedFlow {
    /// Ends it. A client that has it reads what has come, and then the end.
    ///
    /// - Parameter descriptors: what the store has under one number; that of a client's process is closed.
    package static func end(_ descriptors: [CInt]) {
        var parts = FlowParts(descriptors)
        if let stream = parts.stream.take(), let channel = parts.channel.take() {
            // The pair is not shut: `dialtone-tls` has yet to put into it what it has taken from the TCP socket. It
            // says the end to the server, and then to the client.
            end(stream, MessageSocket(channel.unshared()))
        } else {
            shut(parts.socket.take())
            shut(parts.stream.take())
        }
    }

    private static func shut(_ descriptor: consuming OwnedDescriptor?) {
        guard let descriptor else { return }
        let number = descriptor.number
        UserThreads.begin(for: OwnedDescriptor.somebody) { shutdown(number, CInt(SHUT_RDWR)) }
        // Behind it, on the same thread.
        descriptor.close()
    }

    private static func end(_ stream: consuming OwnedDescriptor, _ channel: consuming MessageSocket) {
        // What was said while nobody listened.
        while case .message(let bytes, _) = channel.receive() {
            guard case .ended = try? RelayWord(bytes[...]) else { continue }
            return SecuredStream.markEnd(of: stream.number, for: OwnedDescriptor.somebody)
        }
        // One that is gone has ended it.
        try? channel.send(SecuredStream.ending)
    }
}
