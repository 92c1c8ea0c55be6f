// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import NetworkPath
package import Varlink

/// `dialtone status`: the network and each connection, on one screen.
package struct StatusScreen: Sendable {
    private let path: NetworkAPI.Path
    private let connections: [ConnectionsAPI.Connection]
    private let now: Timestamp
    private let reader: Reader

    /// What is known at `now`.
    package init(
        path: NetworkAPI.Path, connections: [ConnectionsAPI.Connection], now: Timestamp, for reader: Reader = Reader()
    ) {
        self.path = path
        self.connections = connections
        self.now = now
        self.reader = reader
    }

    /// The lines.
    package func lines(_ style: Style) -> [String] {
        let network = "Network  " + style.paint(PathText.network(path), PathText.tone(path))
        guard !connections.isEmpty else {
            return [
                network, "", style.paint("No connections. `dialtone open tcp://HOST:PORT` supervises one.", .faint),
            ]
        }
        return [network, ""] + ConnectionTable(connections, now: now, for: reader).lines(style)
    }
}

/// The table of `dialtone status` and `dialtone list`. It has a column of owners where there is more than one.
package struct ConnectionTable: Sendable {
    private let connections: [ConnectionsAPI.Connection]
    private let now: Timestamp
    private let reader: Reader

    /// What is known at `now`.
    package init(_ connections: [ConnectionsAPI.Connection], now: Timestamp, for reader: Reader = Reader()) {
        self.connections = connections
        self.now = now
        self.reader = reader
    }

    /// The lines.
    package func lines(_ style: Style) -> [String] {
        let hasSeveralOwners = Set(connections.map(\.owner)).count > 1
        var table = Table(
            ["NAME"] + (hasSeveralOwners ? ["OWNER"] : []) + ["STATE", "REMOTE", "VIA", "FOR", "PROOF", "HOLDER", ""])
        for connection in connections {
            let owner: [Table.Cell] = hasSeveralOwners ? [.init(reader.owner(connection))] : []
            let rest: [Table.Cell] = [
                .init(ConnectionText.state(connection.state), ConnectionText.tone(connection)),
                .init(connection.remote), .init(connection.interface ?? "–"), .init(since(connection.since)),
                .init(connection.lastProof.map { "\(since($0)) ago" } ?? "–"), .init(connection.holder.rawValue),
                .init(ConnectionText.remark(connection, now: now), .faint),
            ]
            table.add([.init(connection.name)] + owner + rest)
        }
        return table.lines(style)
    }

    private func since(_ time: Timestamp) -> String { (now - time).short }
}
