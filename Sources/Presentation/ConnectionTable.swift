// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import DialtoneNetworkPath
package import DialtoneVarlink

/// The table of `dialtone status` and `dialtone list`. It has a column of owners where there is more than one.
package struct ConnectionTable: Sendable {
    /// A column. What stands later in the list of all is given up first where there is too little room.
    private enum Column: CaseIterable {
        case name, owner, state, remote, duration, interface, heard, epoch, holder, address, security

        var heading: String {
            switch self {
            case .name: "NAME"
            case .owner: "OWNER"
            case .state: "STATE"
            case .remote: "REMOTE"
            case .interface: "VIA"
            case .duration: "FOR"
            case .heard: "HEARD"
            case .epoch: "EPOCH"
            case .holder: "HELD BY"
            case .address: "ADDRESS"
            case .security: "TLS"
            }
        }

        /// Whether the table is of no use without it.
        var isNeeded: Bool {
            switch self {
            case .name, .state, .duration: true
            case .owner, .remote, .interface, .heard, .epoch, .holder, .address, .security: false
            }
        }
    }

    private let connections: [ConnectionsAPI.Connection]
    private let now: Timestamp
    private let reader: Reader
    private let isWide: Bool

    /// What is known at `now`.
    ///
    /// - Parameter isWide: whether the columns are in it that few need.
    package init(
        _ connections: [ConnectionsAPI.Connection], now: Timestamp, for reader: Reader = Reader(), isWide: Bool = false
    ) {
        self.connections = connections
        self.now = now
        self.reader = reader
        self.isWide = isWide
    }

    /// The lines. Where the table is too wide, columns fall away, and what is to be said of a connection stands below
    /// it.
    package func lines(_ style: Style) -> [String] {
        let width = isWide ? nil : style.width
        var columns = columns
        var table = table(of: columns)
        while let width, table.width > width, let dispensable = columns.lastIndex(where: { !$0.isNeeded }) {
            columns.remove(at: dispensable)
            table = self.table(of: columns)
        }
        let remarks = connections.map { ConnectionText.remark($0, now: now) }
        let room = width.map { $0 - table.width - 2 } ?? .max
        // All of them stand on one side: behind the rows, or below.
        if remarks.allSatisfy({ $0.count <= room }) {
            return self.table(of: columns, with: remarks).lines(style)
        }
        let rows = table.lines(style)
        return rows.prefix(1)
            + zip(rows.dropFirst(), remarks).flatMap { row, remark in
                [row] + remark.wrapped(to: width ?? .max, indent: 4).map { style.paint($0, .faint) }
            }
    }

    private var columns: [Column] {
        let hasSeveralOwners = Set(connections.map(\.owner)).count > 1
        return Column.allCases.filter { column in
            switch column {
            case .owner: hasSeveralOwners || isWide
            case .epoch, .holder, .address, .security: isWide
            case .name, .state, .remote, .interface, .duration, .heard: true
            }
        }
    }

    private func table(of columns: [Column], with remarks: [String] = []) -> Table {
        var table = Table(columns.map(\.heading))
        for (index, connection) in connections.enumerated() {
            let remark: [Table.Cell] = remarks.isEmpty ? [] : [.init(remarks[index], .faint)]
            table.add(columns.map { cell($0, connection) } + remark)
        }
        return table
    }

    private func cell(_ column: Column, _ connection: ConnectionsAPI.Connection) -> Table.Cell {
        switch column {
        case .name: .init(connection.name)
        case .owner: .init(reader.owner(connection))
        case .state: .init(ConnectionText.standing(connection), ConnectionText.tone(connection))
        case .remote: .init(connection.remote)
        case .interface: .init(connection.interface ?? "–")
        case .duration: .init(ConnectionText.duration(connection, now: now))
        case .heard: .init(connection.lastProof.map { "\((now - $0).short) ago" } ?? "–")
        case .epoch: .init("\(connection.epoch)")
        case .holder: .init(ConnectionText.holder(connection))
        case .address: .init(connection.remoteAddress ?? "–")
        case .security: .init(connection.security.map { "TLS \($0.version)" } ?? "–")
        }
    }
}
