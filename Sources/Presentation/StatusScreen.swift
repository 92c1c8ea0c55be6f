// SPDX-License-Identifier: Apache-2.0

public import DialtoneAPI

/// `dialtone status`: the network and each connection, on one screen.
public struct StatusScreen: Sendable {
    private let path: NetworkAPI.Path
    private let connections: [ConnectionsAPI.Connection]
    private let now: Timestamp

    /// What is known at `now`.
    public init(path: NetworkAPI.Path, connections: [ConnectionsAPI.Connection], now: Timestamp) {
        self.path = path
        self.connections = connections
        self.now = now
    }

    /// The lines.
    public func lines(_ style: Style) -> [String] {
        let network = "Network  " + style.paint(PathText.network(path), PathText.tone(path))
        guard !connections.isEmpty else {
            return [
                network, "", style.paint("No connections. `dialtone open tcp://HOST:PORT` supervises one.", .faint),
            ]
        }
        return [network, ""] + ConnectionTable(connections, now: now).lines(style)
    }
}

/// The table of `dialtone status` and `dialtone list`.
public struct ConnectionTable: Sendable {
    private let connections: [ConnectionsAPI.Connection]
    private let now: Timestamp

    /// What is known at `now`.
    public init(_ connections: [ConnectionsAPI.Connection], now: Timestamp) {
        self.connections = connections
        self.now = now
    }

    /// The lines.
    public func lines(_ style: Style) -> [String] {
        var table = Table(["NAME", "STATE", "REMOTE", "VIA", "FOR", "PROOF", "HOLDER", ""])
        for connection in connections {
            table.add([
                .init(connection.name), .init(ConnectionText.state(connection.state), ConnectionText.tone(connection)),
                .init(connection.remote), .init(connection.interface ?? "–"), .init(since(connection.since)),
                .init(connection.lastProof.map { "\(since($0)) ago" } ?? "–"), .init(connection.holder.rawValue),
                .init(ConnectionText.remark(connection, now: now), .faint),
            ])
        }
        return table.lines(style)
    }

    private func since(_ time: Timestamp) -> String {
        DurationText.short(milliseconds: now.milliseconds - time.milliseconds)
    }
}
