// SPDX-License-Identifier: Apache-2.0

/// The addresses that begin with the same bits: what a route leads to.
package struct IPPrefix: Hashable, Sendable, CustomStringConvertible {
    /// An address that has these bits.
    package let address: IPAddress
    /// How many of its leading bits count.
    package let length: Int

    /// The addresses that share the first `length` bits of `address`.
    package init(_ address: IPAddress, length: Int) {
        self.address = address
        self.length = min(max(length, 0), address.family.bitWidth)
    }

    /// Every address of a family: what a default route leads to.
    package static func all(_ family: IPAddress.Family) -> IPPrefix {
        IPPrefix(family == .v4 ? IPAddress(v4: 0) : IPAddress(v6: 0), length: 0)
    }

    /// Whether `address` is among them.
    package func contains(_ address: IPAddress) -> Bool {
        address.sharesPrefix(with: self.address, length: length)
    }

    /// `192.0.2.0/24`.
    package var description: String { "\(address)/\(length)" }
}
