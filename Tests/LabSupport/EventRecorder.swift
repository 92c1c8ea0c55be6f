// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneClient
internal import DialtonePlatform

/// A subscriber of a daemon's connections that writes down what it was told, and when.
package final class EventRecorder: Sendable {
    /// One reply of `Monitor`, with the time it was read, on `BootClock`.
    package struct Told: Sendable {
        /// The reply.
        package let reply: ConnectionsAPI.Monitor.Reply
        /// When it was read.
        package let time: Duration
    }

    /// Told at each reply.
    package let changes = ChangeSignal()

    private let log = Lock<[Told]>([])
    private let task = Lock<Task<Void, Never>?>(nil)

    private init() {}

    deinit {
        task.withLock { $0?.cancel() }
    }

    /// Subscribes, and returns when the first reply is there.
    package static func start(
        on agent: LabAgent, names: [String]? = nil, after: Int? = nil
    ) async throws -> EventRecorder {
        try await start(by: agent.client, names: names, after: after)
    }

    /// Subscribes by a client, and returns when the first reply is there.
    package static func start(
        by client: DialtoneClient, names: [String]? = nil, after: Int? = nil
    ) async throws -> EventRecorder {
        let recorder = EventRecorder()
        let stream = client.stream(ConnectionsAPI.Monitor.self, .init(names: names, after: after))
        let task = Task { [weak recorder] in
            do {
                for try await reply in stream { recorder?.add(reply) }
            } catch {
                // The daemon is gone; who waits for more finds out by waiting.
            }
        }
        recorder.task.withLock { $0 = task }
        try await recorder.changes.wait(for: "the first word of the daemon") { recorder.told.first.map { _ in } }
        return recorder
    }

    /// Everything told so far.
    package var told: [Told] { log.withLock { $0 } }

    /// The events told so far.
    package var events: [ConnectionsAPI.Event] { told.compactMap(\.reply.event) }

    /// Waits for an event after the `count` first that `matches`.
    package func event(
        _ awaited: String, after count: Int = 0, where matches: (ConnectionsAPI.Event) -> Bool
    ) async throws -> ConnectionsAPI.Event {
        try await changes.wait(for: awaited, describe: summary) { events.dropFirst(count).first(where: matches) }
    }

    /// Waits until the connection enters `state`, or a run of the agent finds it there, by an event after the `count`
    /// first. What else is told of a connection in that state, and may be on its way still, is not waited for.
    @discardableResult
    package func state(
        _ state: ConnectionsAPI.State, of name: String, after count: Int = 0
    ) async throws -> ConnectionsAPI.Event {
        try await event("\(name) to be \(state.rawValue)", after: count) {
            [.state, .closed, .opened, .continued].contains($0.kind) && $0.connection.name == name
                && $0.connection.state == state
        }
    }

    /// Waits until the newest word about a connection, an event or not, has it in `state`.
    @discardableResult
    package func connection(
        _ name: String, in state: ConnectionsAPI.State
    ) async throws -> ConnectionsAPI.Connection {
        try await changes.wait(for: "\(name) in \(state.rawValue)", describe: summary) {
            let newest = told.reversed().lazy.compactMap { $0.reply.connections.first { $0.name == name } }.first
            return newest?.state == state ? newest : nil
        }
    }

    /// What is wrong with the order of what was told; `nil` when nothing is: no gap, and consecutive numbers, which
    /// holds for a subscriber that may see every connection.
    package var disorder: String? {
        let replies = told.map(\.reply)
        for (earlier, later) in zip(replies, replies.dropFirst()) {
            if later.kind == .gap { return "a gap before \(later.sequence)" }
            if later.sequence != earlier.sequence + 1 { return "\(later.sequence) after \(earlier.sequence)" }
        }
        return nil
    }

    private func add(_ reply: ConnectionsAPI.Monitor.Reply) {
        let time = BootClock.now()
        log.withLock { $0.append(Told(reply: reply, time: time)) }
        changes.notify()
    }

    private func summary() -> String {
        events.map { "\($0.connection.name) \($0.connection.state.rawValue): \($0.reason ?? "")" }
            .joined(separator: "\n")
    }
}
