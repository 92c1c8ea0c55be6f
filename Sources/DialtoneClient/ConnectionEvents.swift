// SPDX-License-Identifier: Apache-2.0

public import DialtoneAPI
internal import DialtoneVarlink

/// What happens to the connections, across restarts of the daemon.
///
/// When the connection to the daemon is lost, this says so, makes it again and goes on after the last reply: with the
/// changes that were missed or, if the daemon no longer has them, with a snapshot or gap that shows where things stand.
/// While no daemon runs it is looked for at growing intervals, up to ``longestPause``. One that was started without the
/// state of the last has none of the connections that programs opened, and the snapshot is without them: a program that
/// opened one opens it again when the daemon is back.
public struct ConnectionEvents: AsyncSequence, Sendable {
    /// What is told.
    public enum Element: Hashable, Sendable {
        /// One reply of `org.dialtone.Connections.Monitor`. After ``agentLost(_:)`` it says that the daemon is back.
        case reply(ConnectionsAPI.Monitor.Reply)
        /// The daemon went, or is not there at the beginning. Nothing that happens is heard of until the next reply.
        case agentLost(DialtoneError)

        /// The reply; `nil` where the daemon was lost.
        public var reply: ConnectionsAPI.Monitor.Reply? { if case .reply(let reply) = self { reply } else { nil } }
    }

    /// What no waiting cures: the daemon refuses, the socket is not open to this user, or the task was cancelled.
    public typealias Failure = DialtoneError

    /// The first pause before the daemon is looked for again; each further one is twice as long.
    public static let shortestPause = Duration.milliseconds(100)
    /// The longest pause. A daemon takes about a second to restart; five seconds late is what a person tolerates.
    public static let longestPause = Duration.seconds(5)

    let client: DialtoneClient
    let parameters: ConnectionsAPI.Monitor.Parameters

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator {
        Iterator(client: client, parameters: parameters)
    }

    /// One iteration.
    public struct Iterator: AsyncIteratorProtocol {
        private let client: DialtoneClient
        private var parameters: ConnectionsAPI.Monitor.Parameters
        private var stream: DialtoneStream<ConnectionsAPI.Monitor>.Iterator?
        private var isLost = false
        private var pause = RetryPause()

        fileprivate init(client: DialtoneClient, parameters: ConnectionsAPI.Monitor.Parameters) {
            self.client = client
            self.parameters = parameters
        }

        private func begin() -> DialtoneStream<ConnectionsAPI.Monitor>.Iterator {
            // After an earlier reply the next one may come only in hours.
            let timeout = parameters.after == nil ? DialtoneClient.defaultTimeout : nil
            return client.stream(ConnectionsAPI.Monitor.self, parameters, timeout: timeout).makeAsyncIterator()
        }

        /// What is told next. It never returns `nil`.
        public mutating func next() async throws(DialtoneError) -> Element? {
            try await next(isolation: nil)
        }

        /// What is told next. It never returns `nil`.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async throws(DialtoneError) -> Element? {
            while true {
                if isLost { try await pause.wait() }
                var current = stream ?? begin()
                var failure = DialtoneError.interrupted(method: ConnectionsAPI.Monitor.name, .hungUp)
                do throws(DialtoneError) {
                    if let reply = try await current.next(isolation: isolation) {
                        (stream, isLost, pause) = (current, false, RetryPause())
                        parameters.after = reply.sequence
                        return .reply(reply)
                    }
                } catch {
                    failure = error
                }
                stream = nil
                guard failure.isPassing else { throw failure }
                guard isLost else {
                    isLost = true
                    return .agentLost(failure)
                }
            }
        }
    }
}

extension DialtoneClient {
    /// What happens to the connections, or to those named, across restarts of the daemon.
    ///
    /// - Parameters:
    ///   - owner: only connections of this user; `nil` for all that the caller may see.
    ///   - after: begins after that sequence instead of with a snapshot.
    public func connectionEvents(
        names: [String]? = nil, owner: Int? = nil, after: Int? = nil
    ) -> ConnectionEvents {
        ConnectionEvents(client: self, parameters: .init(names: names, owner: owner, after: after))
    }
}
