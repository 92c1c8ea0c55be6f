// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
package import DialtoneVarlink

/// Calls for a program whose state lives on the agent's queue: without a task, since the first task starts Swift's pool
/// of threads, and that wakes the process each second for ever.
extension DialtoneClient {
    /// Ends a call or a stream before its time. Nothing is completed after it.
    package typealias HangUp = @AgentQueue () -> Void

    /// Calls `method`, and then `completion` once, in a later turn or in this one.
    ///
    /// - Parameter timeout: how long its answer may take; `nil` for as long as it does.
    @AgentQueue @discardableResult
    package func begin<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters, timeout: Duration? = defaultTimeout,
        _ completion: @escaping @AgentQueue (Result<VarlinkAnswer<M>, DialtoneError>) -> Void
    ) -> HangUp {
        let call = PendingCall<M>(paths: paths, parameters: parameters, timeout: timeout)
        var isOver = false
        call.start { result in
            guard !isOver else { return }
            isOver = true
            completion(result)
        }
        return {
            isOver = true
            call.cancel()
        }
    }

    /// Calls `method` for a stream, and `handler` with each reply, with `nil` after the last one, or with what ended
    /// the stream.
    @AgentQueue
    package func follow<M: VarlinkMethod>(
        _ method: M.Type, _ parameters: M.Parameters,
        _ handler: @escaping @AgentQueue (Result<M.Reply?, DialtoneError>) -> Void
    ) -> HangUp {
        let stream = OpenStream<M>(paths: paths, parameters: parameters)
        let reading = StreamReading(stream, handler)
        reading.next()
        return { reading.end() }
    }
}

/// Asks a stream for one reply after the other.
@AgentQueue
private final class StreamReading<M: VarlinkMethod> {
    private let stream: OpenStream<M>
    private var handler: (@AgentQueue (Result<M.Reply?, DialtoneError>) -> Void)?

    init(_ stream: OpenStream<M>, _ handler: @escaping @AgentQueue (Result<M.Reply?, DialtoneError>) -> Void) {
        (self.stream, self.handler) = (stream, handler)
    }

    func next() {
        stream.next { [self] result in
            handler?(result)
            if handler != nil, case .success(_?) = result { next() }
        }
    }

    func end() {
        handler = nil
        stream.cancel()
    }
}
