// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

// A gateway can answer while nothing behind it does. When the server does not answer over the kernel's route, a dial
// also tries another uplink. Later dials test the kernel's route, and the connection goes back when one succeeds.

/// A route to the server over another interface than the kernel's.
package struct Detour: Hashable, Sendable {
    /// The interface's index.
    package let interfaceIndex: Int
    /// The interface's name.
    package let interface: String
    /// The source address there.
    package let source: IPAddress

    /// A detour by `path`; `nil` where that leads nowhere.
    package init?(_ path: Path) {
        guard path.status == .satisfied, let interface = path.interface, let source = path.source else { return nil }
        (interfaceIndex, self.interface, self.source) = (interface.index, interface.name, source)
    }
}
