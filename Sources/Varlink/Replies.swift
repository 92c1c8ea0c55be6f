// SPDX-License-Identifier: Apache-2.0

public import Platform

/// Who waits for the replies to a call.
@AgentQueue
protocol ReplyConsumer: AnyObject, Sendable {
    var wantsReply: Bool { get }
    /// Takes a message and says whether it was the last one.
    func take(_ message: [UInt8]) throws(VarlinkViolation) -> Bool
    func fail(_ error: VarlinkCallError)
}

/// The one reply to a call.
@AgentQueue
final class SingleReply<M: VarlinkMethod>: ReplyConsumer {
    private var completion: (@AgentQueue (Result<M.Reply, VarlinkCallError>) -> Void)?
    var wantsReply: Bool { true }

    init(_ completion: @escaping @AgentQueue (Result<M.Reply, VarlinkCallError>) -> Void) {
        self.completion = completion
    }

    func take(_ message: [UInt8]) throws(VarlinkViolation) -> Bool {
        switch try VarlinkReply<M.Reply>(message) {
        case .success(_, continues: true): throw .unexpectedReply
        case .success(let reply, continues: false): finish(with: .success(reply))
        case .failure(let failure): finish(with: .failure(.refused(failure)))
        }
        return true
    }

    func fail(_ error: VarlinkCallError) {
        finish(with: .failure(error))
    }

    private func finish(with result: Result<M.Reply, VarlinkCallError>) {
        // Taken first: the completion may close the connection, which fails everything that still waits.
        let waiting = completion
        completion = nil
        waiting?(result)
    }
}

/// The replies of a stream, drawn one at a time.
@AgentQueue
public final class VarlinkReplies<M: VarlinkMethod>: ReplyConsumer {
    private weak var connection: VarlinkConnection?
    private var completion: (@AgentQueue (Result<M.Reply?, VarlinkCallError>) -> Void)?
    private var outcome: Result<M.Reply?, VarlinkCallError>?

    init(_ connection: VarlinkConnection) {
        self.connection = connection
    }

    var wantsReply: Bool { completion != nil }

    /// Calls `completion` once with the next reply, with `nil` after the last one, or with what ended the stream before
    /// its time. The next one may be asked for when this one has come, also from inside `completion`.
    public func next(_ completion: @escaping @AgentQueue (Result<M.Reply?, VarlinkCallError>) -> Void) {
        precondition(self.completion == nil, "the reply before this one has not come yet")
        if let outcome { return completion(outcome) }
        self.completion = completion
        connection?.demand()
    }

    func take(_ message: [UInt8]) throws(VarlinkViolation) -> Bool {
        switch try VarlinkReply<M.Reply>(message) {
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
