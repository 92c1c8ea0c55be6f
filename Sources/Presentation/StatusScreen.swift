// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtoneVarlink

/// `dialtone status`: the network and each connection, on one screen.
package struct StatusScreen: Sendable {
    private let path: NetworkAPI.Path
    private let connections: [ConnectionsAPI.Connection]
    private let now: Timestamp
    private let reader: Reader
    private let count: Int
    private let isWide: Bool

    /// What is known at `now`.
    ///
    /// - Parameters:
    ///   - connections: those that are shown.
    ///   - count: how many there are; as many as are shown, unless given.
    ///   - isWide: whether the columns are in the table that few need.
    package init(
        path: NetworkAPI.Path, connections: [ConnectionsAPI.Connection], of count: Int? = nil, now: Timestamp,
        for reader: Reader = Reader(), isWide: Bool = false
    ) {
        self.path = path
        self.connections = connections
        self.now = now
        self.reader = reader
        self.count = count ?? connections.count
        self.isWide = isWide
    }

    /// The lines.
    package func lines(_ style: Style) -> [String] {
        let heading = "Network  "
        let room = style.width.map { $0 - heading.count } ?? .max
        let network = PathText.network(path).wrapped(to: room, indent: 0).enumerated().map { index, part in
            (index == 0 ? heading : String(repeating: " ", count: heading.count))
                + style.paint(part, PathText.tone(path))
        }
        guard !connections.isEmpty else {
            let none =
                count > 0
                ? "None of the \(count) connections matches."
                : "No connections. \"dialtone open tcp://HOST:PORT\" supervises one."
            return network + [""] + style.sentence(none, .faint)
        }
        return network + [""]
            + ConnectionTable(connections, now: now, for: reader, isWide: isWide).lines(style)
    }
}
