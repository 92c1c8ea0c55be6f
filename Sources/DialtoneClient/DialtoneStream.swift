// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
public import DialtoneVarlink

/// The replies of a stream, each read from the socket when it is asked for: a consumer that is slow makes the daemon
/// conflate or count a gap, not this process grow.
///
/// Each iteration makes a connection of its own; ending the loop, dropping the iterator or cancelling the task hangs
/// up.
public struct DialtoneStream<M: VarlinkMethod>: AsyncSequence, Sendable {
    /// One reply.
    public typealias Element = M.Reply
    /// What ends the stream before its time.
    public typealias Failure = DialtoneError

    let paths: [String]
    let parameters: M.Parameters
    /// How long the first reply may take; `nil` for as long as it does.
    let timeout: Duration?

    /// Begins an iteration. It connects at the first ``Iterator/next(isolation:)``.
    public func makeAsyncIterator() -> Iterator {
        Iterator(stream: self)
    }

    /// One iteration.
    public struct Iterator: AsyncIteratorProtocol {
        private let stream: DialtoneStream
        private var handle: Handle?

        fileprivate init(stream: DialtoneStream) { self.stream = stream }

        /// The next reply, and `nil` after the last one.
        public mutating func next() async throws(DialtoneError) -> M.Reply? {
            try await next(isolation: nil)
        }

        /// The next reply, and `nil` after the last one.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async throws(DialtoneError) -> M.Reply? {
            let handle =
                if let handle { handle } else {
                    Handle(
                        await OpenStream<M>(
                            paths: stream.paths, parameters: stream.parameters, timeout: stream.timeout))
                }
            self.handle = handle
            let open = handle.stream
            let result = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    AgentQueue.async { open.next { continuation.resume(returning: $0) } }
                }
            } onCancel: {
                AgentQueue.async { open.cancel() }
            }
            return try result.get()
        }
    }

    /// Hangs up when the last copy of an iterator is gone.
    private final class Handle: Sendable {
        let stream: OpenStream<M>

        init(_ stream: OpenStream<M>) { self.stream = stream }

        deinit {
            let stream = stream
            AgentQueue.async { stream.cancel() }
        }
    }
}
