// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneClient
internal import DialtoneNetworkPath
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Synchronization

/// Writes a line for each change, for `dialtone watch` and `dialtone history --follow`, until something ends it.
final class WatchStream: Sendable {
    private let names: [String]
    private let owner: Int?
    private let json: Bool
    private let isSilentAtFirst: Bool
    private let after: Int?
    private let pages: Mutex<DayPages>

    /// - Parameters:
    ///   - names: the connections; none for all, and the network.
    ///   - isSilentAtFirst: whether the present state is known and not written.
    ///   - after: the sequence of the last event that was written, if any was.
    ///   - pages: the days that were written so far.
    init(
        names: [String], owner: Int?, json: Bool, isSilentAtFirst: Bool = false, after: Int? = nil,
        pages: DayPages = DayPages()
    ) {
        (self.names, self.owner, self.json) = (names, owner, json)
        (self.isSilentAtFirst, self.after) = (isSilentAtFirst, after)
        self.pages = Mutex(pages)
    }

    /// Writes until the agent refuses, or what it says makes no sense.
    func run() async throws {
        // A connection of the socket for each stream: one holds its connection until it ends.
        try await withThrowingTaskGroup(of: Void.self) { group in
            if names.isEmpty, owner == nil {
                group.addTask { try await self.watchPath(to: nil) }
            }
            group.addTask { try await self.watchConnections() }
            // Neither ends by itself; what fails one, the agent's return does not mend.
            try await group.next()
            group.cancelAll()
        }
    }

    /// Writes what becomes of the path to a host, or of the network's; goes on when the agent is back.
    func watchPath(to target: NetworkAPI.Target?, called subject: String = "network") async throws {
        var (isKnown, pause) = (false, RetryPause())
        while true {
            do throws(DialtoneError) {
                for try await reply in DialtoneClient().stream(NetworkAPI.MonitorPath.self, .init(target: target)) {
                    defer { (isKnown, pause) = (true, RetryPause()) }
                    if isSilentAtFirst, !isKnown { continue }
                    if json {
                        Output.write(json: reply)
                    } else {
                        write(WatchLine(path: reply.path, of: subject, changes: reply.changes, at: .now()))
                    }
                }
            } catch {
                // Where the agent went, the other stream says so.
                guard isKnown, error.isPassing else { throw error }
            }
            try await pause.wait()
        }
    }

    private func watchConnections() async throws {
        var isThere: Bool?
        let events = DialtoneClient().connectionEvents(names: names.isEmpty ? nil : names, owner: owner, after: after)
        for try await event in events {
            switch event {
            case .agentLost(let error):
                // One that was not there in the first place is an error, as for every other command.
                guard isThere != nil else { throw error }
                isThere = false
                write(agentIsThere: false)
            case .reply(let reply):
                if isThere == false { write(agentIsThere: true) }
                // What is no event is how things stand.
                if !isSilentAtFirst || isThere != nil || reply.event != nil { write(reply) }
                isThere = true
            }
        }
    }

    private func write(agentIsThere isThere: Bool) {
        let line = WatchLine(agentIsThere: isThere, at: .now())
        if json { Output.fail("the agent is \(line.text)") } else { write(line) }
    }

    private func write(_ reply: ConnectionsAPI.Monitor.Reply) {
        if json {
            Output.write(json: reply)
        } else if let event = reply.event {
            write(WatchLine(event, for: Output.reader))
        } else {
            if reply.kind == .gap { write(WatchLine(gapAt: .now())) }
            for connection in reply.connections { write(WatchLine(connection, at: .now(), for: Output.reader)) }
        }
    }

    private func write(_ line: WatchLine) {
        let style = Output.style
        let lines = line.lines(style, clock: Output.localTime.clock)
        pages.withLock { Output.write($0.lines(lines, of: Output.localTime.day(line.time), style)) }
    }
}
