// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import Glibc

/// Reads the kernel's links and addresses whole, on a socket of its own, so that the notices which come meanwhile wait
/// on theirs and are applied afterwards: a delete during the dump survives it.
struct KernelDump {
    /// An interrupted dump is repeated this often, then accepted as it is and marked not coherent. Under churn that
    /// interrupts five dumps in a row the sixth will fare no better, and the notices repair most of it.
    static let attempts = 5

    private let socket: NetlinkSocket
    private let visit: (NetlinkMessage) -> Void

    /// - Parameter visit: is shown each link's message, for what a snapshot has no place for; each anew when the dump
    ///   is repeated.
    init(on socket: NetlinkSocket, visitingLinks visit: @escaping (NetlinkMessage) -> Void = { _ in }) {
        self.socket = socket
        self.visit = visit
    }

    /// The snapshot that a dump of links and addresses gives. It is coherent when no part of it was interrupted.
    func read(kinds: inout InterfaceKinds) throws(SystemError) -> NetworkSnapshot {
        var snapshot = NetworkSnapshot()
        let links = try repeated { () throws(SystemError) in try dump(RTM_GETLINK, header: ifinfomsg(), kinds: &kinds) }
        let addresses = try repeated { () throws(SystemError) in
            try dump(RTM_GETADDR, header: ifaddrmsg(), kinds: &kinds)
        }
        // New IPv6 addresses come before those that there are, new IPv4 ones behind: so a list is read the other way.
        let addressesOfV6 = addresses.events.filter(\.isAddressOfV6)
        let rest = addresses.events.filter { !$0.isAddressOfV6 }
        for event in links.events + rest + addressesOfV6.reversed() { _ = snapshot.apply(event) }
        snapshot.isCoherent = links.isComplete && addresses.isComplete
        return snapshot
    }

    private typealias Outcome = (events: [KernelEvent], isComplete: Bool)

    private func repeated(_ dump: () throws(SystemError) -> Outcome) throws(SystemError) -> Outcome {
        var outcome: Outcome
        do throws(SystemError) {
            outcome = try dump()
        } catch {
            // One broke off for want of memory and counts as running for ever: the kernel goes on with it only when
            // something is read, and nothing comes.
            guard error.code == EBUSY else { throw error }
            try finishEarlierDump()
            outcome = try dump()
        }
        for _ in 1..<Self.attempts where !outcome.isComplete { outcome = try dump() }
        return outcome
    }

    /// Reads a dump to its end that was given up. A request that is answered at once makes something to read.
    private func finishEarlierDump() throws(SystemError) {
        for _ in 0..<Self.attempts {
            let nudge = NetlinkRequest(type: Int(NLMSG_NOOP), flags: NLM_F_REQUEST | NLM_F_ACK, header: UInt32(0))
            _ = try socket.send(nudge)
            // It may break off again, with the error that it has.
            reading: while let reception = try? socket.receive() {
                switch reception {
                case .overrun: continue
                case .empty: break reading
                case .messages(let datagram):
                    var isDone = false
                    NetlinkMessage.forEach(in: datagram) { isDone = isDone || $0.type == NLMSG_DONE }
                    if isDone { return }
                }
            }
        }
    }

    private func dump<Header: BitwiseCopyable>(
        _ type: Int, header: Header, kinds: inout InterfaceKinds
    ) throws(SystemError) -> Outcome {
        var events: [KernelEvent] = []
        let request = NetlinkRequest(type: type, flags: NLM_F_REQUEST | NLM_F_DUMP, header: header)
        let end = try socket.dump(request, "reading the kernel's network state") { message in
            if type == RTM_GETLINK { visit(message) }
            if let event = KernelEvent(message, kinds: &kinds) { events.append(event) }
            return true
        }
        return (events, end == .complete)
    }
}

extension KernelEvent {
    fileprivate var isAddressOfV6: Bool {
        if case .addressPresent(let address, _) = self { address.address.family == .v6 } else { false }
    }
}
