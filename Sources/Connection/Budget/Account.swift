// SPDX-License-Identifier: Apache-2.0

/// Who answers for what a connection, or a question, causes on the network.
package struct Account: Hashable, Sendable {
    /// The user.
    package let user: UInt32
    /// Whether what is caused counts against the user's budgets. Not where the administrator decided how much it is:
    /// root's connections, and those of the configuration.
    package let isLimited: Bool

    /// An account of `user`.
    package init(user: UInt32, isLimited: Bool) {
        self.user = user
        self.isLimited = isLimited
    }

    /// What nobody is held to a limit for.
    package static let administrator = Account(user: 0, isLimited: false)
}
