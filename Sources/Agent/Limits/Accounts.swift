// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import Glibc

extension Account {
    /// Who answers for what `user` asks for. Root is not limited, and in a user's own daemon that user is not.
    init(of user: UInt32) { self.init(user: user, isLimited: user != 0 && user != geteuid()) }
}

extension RegisteredConnection {
    /// Who answers for it. How many connections a file names, and to where, is the administrator's decision: they are
    /// dialled as fast as the network takes them, each within its own ``Rate/dialsOfAConnection``.
    var account: Account { origin == .configuration ? Account(user: owner, isLimited: false) : Account(of: owner) }
}
