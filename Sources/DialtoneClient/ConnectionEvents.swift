// SPDX-License-Identifier: Apache-2.0

public import DialtoneAPI
internal import Varlink

/// What happens to the connections, across restarts of the daemon.
///
/// When the connection to the daemon is lost, it is made again and the sequence goes on after the last reply: with the
/// changes that were missed or, if the daemon no longer has them, with a snapshot or gap that shows where things stand.
/// While no daemon runs it is looked for at growing intervals, up to ``longestPause``. One that was started without the
/// state of the last has none of the connections that programs opened, and the snapshot is without them: a program that
/// opened one does better with ``DialtoneClient/stream(_:_:)``, which ends with the daemon.
public struct ConnectionEvents: AsyncSequence, Sendable {
    /// One reply of `org.dialtone.Connections.Monitor`.
    public typealias Element = ConnectionsAPI.Monitor.Reply
    /// What no waiting cures: the daemon refuses, the socket is not open to this user, or the task was cancelled.
    public typealias Failure = DialtoneError

    /// The first pause before the daemon is looked for again; each further one is twice as long.
    public static let shortestPause = Duration.milliseconds(100)
    /// The longest pause. A daemon takes about a second to restart; five seconds late is what a person tolerates.
    public static let longestPause = Duration.seconds(5)

    let client: DialtoneClient
    let names: [String]?
    let after: Int?

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator {
        Iterator(client: client, names: names, sequence: after)
    }

    /// One iteration.
    public struct Iterator: AsyncIteratorProtocol {
        private let client: DialtoneClient
        private let names: [String]?
        private var sequence: Int?
        private var stream: DialtoneStream<ConnectionsAPI.Monitor>.Iterator?
        private var pause = RetryPause()

        fileprivate init(client: DialtoneClient, names: [String]?, sequence: Int?) {
            self.client = client
            self.names = names
            self.sequence = sequence
        }

        /// The next reply. It never returns `nil`.
        public mutating func next() async throws(DialtoneError) -> Element? {
            try await next(isolation: nil)
        }

        /// The next reply. It never returns `nil`.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async throws(DialtoneError) -> Element? {
            while true {
                var current =
                    stream
                    ?? client.stream(ConnectionsAPI.Monitor.self, .init(names: names, after: sequence))
                    .makeAsyncIterator()
                do throws(DialtoneError) {
                    let reply = try await current.next(isolation: isolation)
                    stream = current
                    if let reply {
                        sequence = reply.sequence
                        pause = RetryPause()
                        return reply
                    }
                } catch {
                    guard error.isPassing else { throw error }
                }
                stream = nil
                try await pause.wait()
            }
        }
    }
}

extension DialtoneClient {
    /// What happens to the connections, or to those named, across restarts of the daemon. With `after`, it begins after
    /// that sequence instead of with a snapshot.
    public func connectionEvents(names: [String]? = nil, after: Int? = nil) -> ConnectionEvents {
        ConnectionEvents(client: self, names: names, after: after)
    }
}
