// SPDX-License-Identifier: Apache-2.0

package import DialtoneVarlink

/// What tells one connection from all others: its owner and its name. Names are by owner, so that no user learns from a
/// refusal, or from a number behind a made-up name, which names others have.
package struct ConnectionKey: Hashable {
    package let owner: UInt32
    package let name: String

    package init(_ name: String, of owner: UInt32) {
        self.name = name
        self.owner = owner
    }
}

/// Which connections a subscriber or a reader asked for.
package struct ConnectionFilter {
    private let names: Set<String>?
    private let owner: UInt32?

    /// Those of these names, of that owner; `nil` for any.
    ///
    /// - Throws: `InvalidParameter` for an owner that is no user's number.
    package init(names: [String]?, owner: Int?) throws(VarlinkFailure) {
        self.names = names.map { Set($0) }
        self.owner = try ConnectionReference.user(owner)
    }

    /// Whether only some connections are asked for, and nothing else.
    package var isNarrow: Bool { names != nil || owner != nil }

    package func matches(_ name: String, of owner: UInt32) -> Bool {
        names?.contains(name) ?? true && matches(anyOf: owner)
    }

    /// Whether some connection of a user's may be meant.
    package func matches(anyOf owner: UInt32) -> Bool { self.owner.map { $0 == owner } ?? true }
}

/// Which connection a client means.
package struct ConnectionReference: Hashable, ExpressibleByStringLiteral {
    package let name: String
    /// Whose it is. Left out: the caller's own, and where root has none of the name, the only one of it.
    package let owner: UInt32?

    /// The connection of that name, of that owner.
    package init(_ name: String, of owner: UInt32? = nil) {
        self.name = name
        self.owner = owner
    }

    package init(stringLiteral name: String) { self.init(name) }

    /// The connection that a call names.
    ///
    /// - Throws: `InvalidParameter` for an owner that is no user's number.
    package init(_ name: String, owner: Int?) throws(VarlinkFailure) {
        self.init(name, of: try Self.user(owner))
    }

    /// The user of a call's parameter `owner`; `nil` where it is left out.
    ///
    /// - Throws: `InvalidParameter` for a number that no user has.
    package static func user(_ owner: Int?) throws(VarlinkFailure) -> UInt32? {
        guard let owner else { return nil }
        guard let user = UInt32(exactly: owner) else {
            throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "owner"))
        }
        return user
    }
}
