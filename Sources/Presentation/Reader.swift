// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI

/// Who reads. Names are by owner, and root sees the connections of all: those of others are shown with their owner.
package struct Reader: Sendable {
    private let user: Int?
    private let userName: @Sendable (Int) -> String

    /// A reader.
    ///
    /// - Parameters:
    ///   - user: the reader's number; `nil` for one to whom owners say nothing.
    ///   - userName: the name of a user, or the number where there is none.
    package init(user: Int? = nil, userName: @escaping @Sendable (Int) -> String = { "\($0)" }) {
        self.user = user
        self.userName = userName
    }

    /// The connection's name, and its owner where that is another user.
    func subject(_ connection: ConnectionsAPI.Connection) -> String {
        other(connection.owner).map { "\(connection.name) (\($0))" } ?? connection.name
    }

    /// The name of an owner who is not the reader.
    func other(_ owner: Int?) -> String? {
        guard let user, let owner, owner != user else { return nil }
        return userName(owner)
    }

    /// The name of a connection's owner.
    func owner(_ connection: ConnectionsAPI.Connection) -> String { connection.owner.map(userName) ?? "–" }
}
