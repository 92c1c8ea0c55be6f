// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtonePlatform
internal import DialtoneVarlink

/// Who gets at this machine's network through the daemon.
///
/// A program that was confined to a network of its own (`PrivateNetwork=`, a container) would leave it by a socket that
/// the daemon made for it, or by the questions that the daemon asks name servers for it. So a client whose socket
/// belongs to another network namespace than the daemon's gets neither, unless the configuration admits its user
/// (`[clients] other_namespaces`); nor does the daemon send anything for it: it parks no flow, leaves no opening and
/// has nothing dialled. Nor do the users of containers, of whom one user may have thousands, each with limits of its
/// own (``SubordinateUsers``), in whatever network they are.
///
/// A client that is refused may see its user's connections, and ask for the path to an address. Filters by control
/// group (`IPAddressDeny=`) are not seen here: what keeps such a program from the daemon is the socket's group.
@AgentQueue
final class NetworkBoundary {
    /// The users whose programs are served wherever they are.
    var admitted: Set<UInt32> = []

    /// The users of containers.
    var subordinates = SubordinateUsers()

    /// What is said to a client that is refused; `nil` for one that is not. Where the kernel does not tell the network
    /// (before Linux 5.14) nobody is refused for it.
    func refusal(of peer: VarlinkPeer) -> String? {
        guard !admitted.contains(peer.uid) else { return nil }
        let reason: String
        if peer.isInSameNetwork == false {
            reason = "the caller is in another network namespace than the daemon"
        } else if let owner = subordinates.owner(of: peer.uid) {
            reason = "user \(peer.uid) is one of \(owner)'s subordinate users (/etc/subuid), for containers"
        } else {
            return nil
        }
        return """
            \(reason); to serve programs of this user all the same, set other_namespaces = ["\(peer.uid)"] under \
            [clients] in the daemon's configuration
            """
    }

    /// Throws at a client that would get a connection over the daemon's network.
    func check(_ peer: VarlinkPeer) throws(VarlinkFailure) {
        if let reason = refusal(of: peer) { throw VarlinkFailure(ConnectionsAPI.ForeignNetwork(reason: reason)) }
    }
}
