// SPDX-License-Identifier: Apache-2.0

@testable internal import DialtoneNetlink
@testable internal import DialtoneNetworkPath
@testable internal import Reachability

extension FuzzTarget {
    /// What the kernel says: a datagram, all that is read out of its messages anywhere, and what the snapshot makes of
    /// them.
    static let netlink = FuzzTarget(name: "netlink") { bytes in
        var kinds = InterfaceKinds { _ in nil }
        var snapshot = NetworkSnapshot()
        // A copy whose end the sanitizer watches.
        bytes.withUnsafeBytes { datagram in
            NetlinkMessage.forEach(in: datagram) { message in
                if let event = KernelEvent(message, kinds: &kinds) { _ = snapshot.apply(event) }
                if case .route(let route)? = RouteAnswer(message) { _ = "\(route)" }
                _ = RouteQuery(message)
                _ = RouteEntry(message)
                _ = NextHopObject(message)
                _ = PolicyRule(message)
                _ = NeighbourEntry(message)
                _ = LinkDetail.read(message)
                _ = (message.errorCode, message.explanation, message.isInterruptedDump, message.sequence)
            }
        }
    }

    /// A file that is to be replayed.
    static let recordings = FuzzTarget(name: "recordings") { bytes in
        if bytes.first == 0 {
            guard let mark = RecordingMark(text: bytes.dropFirst().map { $0 }.text) else { return }
            precondition(RecordingMark(text: mark.description) != nil)
        } else if let recording = try? Recording(Array(bytes.dropFirst())) {
            _ = Replay(recording)
        }
    }
}
