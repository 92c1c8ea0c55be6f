// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// Whose packets those of a connection are, as far as policy rules by user can tell.
enum PacketOwner {
    /// Whether this process may give its sockets to other users: that takes `CAP_CHOWN`, which the shipped unit goes
    /// without. Found out by trying, since a system call filter refuses whatever the capabilities are.
    static let canBeAnother: Bool = {
        let number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return false }
        let descriptor = OwnedDescriptor(number)
        return fchown(descriptor.number, geteuid() ^ 1, gid_t.max) == 0
    }()

    /// The user whose packets the connections of `owner` carry; `nil` for the daemon's own, where they are root's or
    /// cannot be anyone else's. A connection with the daemon's packets is better than none.
    static func user(for owner: UInt32) -> UInt32? {
        owner == 0 || owner == geteuid() || !canBeAnother ? nil : owner
    }
}
