// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneVarlink

/// One stream on a connection of its own.
@AgentQueue
final class OpenStream<M: VarlinkMethod> {
    typealias Completion = @AgentQueue (Result<M.Reply?, DialtoneError>) -> Void

    private let connector: Connector
    private let parameters: M.Parameters
    /// How long the first reply may take; `nil` for as long as it does.
    private let timeout: Duration?
    private var timer: Timers.Timer?
    private var connection: VarlinkConnection?
    private var replies: VarlinkReplies<M>?
    private var completion: Completion?
    private var outcome: Result<M.Reply?, DialtoneError>?

    init(paths: [String], parameters: M.Parameters, timeout: Duration? = nil) {
        connector = Connector(paths: paths)
        self.parameters = parameters
        self.timeout = timeout
    }

    /// Calls `completion` once with the next reply, with `nil` after the last one, or with what ended the stream. The
    /// first time, it connects.
    func next(_ completion: @escaping Completion) {
        if let outcome { return completion(outcome) }
        // A mistake of the program that reads the stream from two tasks at a time.
        precondition(self.completion == nil, "one reply at a time is asked for")
        self.completion = completion
        if let replies { return take(from: replies) }
        timer = timeout.map { timeout in
            Timers.shared.schedule(after: timeout) { [self] in end(.failure(.timedOut(method: M.name, timeout))) }
        }
        connector.connect { [self] result in
            switch result {
            case .failure(let error): end(.failure(error))
            case .success(let connection):
                let replies = connection.stream(M.self, parameters)
                self.connection = connection
                self.replies = replies
                take(from: replies)
            }
        }
    }

    /// Hangs up.
    func cancel() {
        end(.failure(.cancelled))
    }

    private func take(from replies: VarlinkReplies<M>) {
        replies.next { [self] result in
            switch result {
            case .success(let reply?):
                timer?.cancel()
                let waiting = completion
                completion = nil
                waiting?(.success(reply))
            case .success(nil): end(.success(nil))
            case .failure(let error): end(.failure(DialtoneError(error, during: M.name)))
            }
        }
    }

    private func end(_ outcome: Result<M.Reply?, DialtoneError>) {
        guard self.outcome == nil else { return }
        self.outcome = outcome
        timer?.cancel()
        connector.cancel()
        connection?.close()
        let waiting = completion
        completion = nil
        waiting?(outcome)
    }
}
