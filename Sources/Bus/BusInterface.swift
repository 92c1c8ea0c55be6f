// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// What an object of ours can be called by: an interface with its methods. The introspection text is made of the same
/// declaration that the calls are checked against.
package struct BusInterface: Sendable {
    /// A method.
    package struct Method: Sendable {
        /// Its name.
        package let name: String
        /// What it takes.
        package let arguments: [Argument]
        /// What it returns.
        package let results: [Argument]
        /// Whether callers are told that it has no answer.
        package let hasNoReply: Bool
        let handler: @AgentQueue (BusCall) -> Void

        /// A method.
        ///
        /// - Parameter handler: is called with each call whose arguments have these types, and sees to the answer.
        ///   Within it the call has its arguments.
        package init(
            _ name: String, _ arguments: [Argument], returns results: [Argument] = [], hasNoReply: Bool = false,
            _ handler: @escaping @AgentQueue (BusCall) -> Void
        ) {
            self.name = name
            self.arguments = arguments
            self.results = results
            self.hasNoReply = hasNoReply
            self.handler = handler
        }

        var signature: String { arguments.map(\.type).joined() }
    }

    /// An argument's name and its type, as D-Bus writes it.
    package struct Argument: Hashable, Sendable {
        let name: String
        let type: String

        /// An argument.
        package init(_ name: String, _ type: String) { (self.name, self.type) = (name, type) }
    }

    /// Its name.
    package let name: String
    /// What it has.
    package let methods: [Method]

    /// An interface.
    package init(_ name: String, _ methods: [Method]) { (self.name, self.methods) = (name, methods) }
}
