// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform

/// Who waits for the replies to a call.
@AgentQueue
protocol ReplyConsumer: AnyObject, Sendable {
    var wantsReply: Bool { get }
    /// Takes a message and says whether it was the last one. Descriptors that it does not keep are closed.
    func take(_ message: Channel.Incoming) throws(VarlinkViolation) -> Bool
    func fail(_ error: VarlinkCallError)
}

/// A reply with what rode on it.
package struct VarlinkAnswer<M: VarlinkMethod>: Sendable {
    /// The reply.
    package let reply: M.Reply
    /// What rode on it, by the places that the reply names; those that nobody takes are closed.
    package let descriptors: VarlinkDescriptors
}

/// The one reply to a call.
@AgentQueue
final class SingleReply<M: VarlinkMethod>: ReplyConsumer {
    private var completion: (@AgentQueue (Result<VarlinkAnswer<M>, VarlinkCallError>) -> Void)?
    var wantsReply: Bool { true }

    init(_ completion: @escaping @AgentQueue (Result<VarlinkAnswer<M>, VarlinkCallError>) -> Void) {
        self.completion = completion
    }

    convenience init(_ completion: @escaping @AgentQueue (Result<M.Reply, VarlinkCallError>) -> Void) {
        self.init { (answer: Result<VarlinkAnswer<M>, VarlinkCallError>) in
            completion(
                answer.map {
                    $0.descriptors.closeAll()
                    return $0.reply
                })
        }
    }

    func take(_ message: Channel.Incoming) throws(VarlinkViolation) -> Bool {
        switch try VarlinkReply<M.Reply>(message.bytes) {
        case .success(_, continues: true): throw .unexpectedReply
        case .success(let reply, continues: false):
            finish(with: .success(.init(reply: reply, descriptors: message.descriptors ?? VarlinkDescriptors())))
        case .failure(let failure): finish(with: .failure(.refused(failure)))
        }
        return true
    }

    func fail(_ error: VarlinkCallError) {
        finish(with: .failure(error))
    }

    private func finish(with result: Result<VarlinkAnswer<M>, VarlinkCallError>) {
        // Taken first: the completion may close the connection, which fails everything that still waits.
        let waiting = completion
        completion = nil
        waiting?(result)
    }
}

/// The replies of a stream, drawn one at a time.
@AgentQueue
package final class VarlinkReplies<M: VarlinkMethod>: ReplyConsumer {
    private weak var connection: VarlinkConnection?
    private var completion: (@AgentQueue (Result<M.Reply?, VarlinkCallError>) -> Void)?
    private var outcome: Result<M.Reply?, VarlinkCallError>?

    init(_ connection: VarlinkConnection) {
        self.connection = connection
    }

    var wantsReply: Bool { completion != nil }

    /// Calls `completion` once with the next reply, with `nil` after the last one, or with what ended the stream before
    /// its time. The next one may be asked for when this one has come, also from inside `completion`.
    package func next(_ completion: @escaping @AgentQueue (Result<M.Reply?, VarlinkCallError>) -> Void) {
        // A mistake of the program that reads the stream from two tasks at a time.
        precondition(self.completion == nil, "the reply before this one has not come yet")
        if let outcome { return completion(outcome) }
        self.completion = completion
        connection?.demand()
    }

    func take(_ message: Channel.Incoming) throws(VarlinkViolation) -> Bool {
        switch try VarlinkReply<M.Reply>(message.bytes) {
        case .success(let reply, continues: true):
            finish(with: .success(reply))
            return false
        case .success(let reply, continues: false):
            outcome = .success(nil)
            finish(with: .success(reply))
        case .failure(let failure):
            outcome = .failure(.refused(failure))
            finish(with: .failure(.refused(failure)))
        }
        return true
    }

    func fail(_ error: VarlinkCallError) {
        guard outcome == nil else { return }
        outcome = .failure(error)
        finish(with: .failure(error))
    }

    private func finish(with result: Result<M.Reply?, VarlinkCallError>) {
        let waiting = completion
        completion = nil
        waiting?(result)
    }
}
