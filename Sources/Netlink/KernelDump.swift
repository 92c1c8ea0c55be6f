// SPDX-License-Identifier: Apache-2.0

internal import CNetlink
internal import Glibc
internal import NetworkPath
internal import Platform

/// Reads the kernel's links and addresses whole, on a socket of its own, so that the notices which come meanwhile wait
/// on theirs and are applied afterwards: a delete during the dump survives it.
struct KernelDump {
    /// An interrupted dump is repeated this often, then accepted as it is and marked not coherent. Under churn that
    /// interrupts five dumps in a row the sixth will fare no better, and the notices repair most of it.
    static let attempts = 5

    private let socket: NetlinkSocket

    init(on socket: NetlinkSocket) {
        self.socket = socket
    }

    /// The snapshot that a dump of links and addresses gives. It is coherent when no part of it was interrupted.
    func read(kinds: inout InterfaceKinds) throws(SystemError) -> NetworkSnapshot {
        var snapshot = NetworkSnapshot()
        let links = try repeated { () throws(SystemError) in try dump(RTM_GETLINK, header: ifinfomsg(), kinds: &kinds) }
        let addresses = try repeated { () throws(SystemError) in
            try dump(RTM_GETADDR, header: ifaddrmsg(), kinds: &kinds)
        }
        for event in links.events + addresses.events { _ = snapshot.apply(event) }
        snapshot.isCoherent = links.isComplete && addresses.isComplete
        return snapshot
    }

    private typealias Outcome = (events: [KernelEvent], isComplete: Bool)

    private func repeated(_ dump: () throws(SystemError) -> Outcome) throws(SystemError) -> Outcome {
        var outcome = try dump()
        for _ in 1..<Self.attempts where !outcome.isComplete { outcome = try dump() }
        return outcome
    }

    private func dump<Header: BitwiseCopyable>(
        _ type: Int, header: Header, kinds: inout InterfaceKinds
    ) throws(SystemError) -> Outcome {
        let sequence = try socket.send(
            NetlinkRequest(type: type, flags: NLM_F_REQUEST | NLM_F_DUMP, header: header))
        var events: [KernelEvent] = []
        var isComplete = true
        while true {
            switch try socket.receive() {
            case .overrun: isComplete = false
            case .empty: return (events, false)
            case .messages(let datagram):
                var isDone = false
                var refusal: CInt?
                NetlinkMessage.forEach(in: datagram) { message in
                    guard message.sequence == sequence else { return }
                    if message.isInterruptedDump { isComplete = false }
                    if let code = message.errorCode {
                        refusal = code
                    } else if message.type == NLMSG_DONE {
                        isDone = true
                    } else if let event = KernelEvent(message, kinds: &kinds) {
                        events.append(event)
                    }
                }
                if let refusal { throw SystemError("reading the kernel's network state", code: refusal) }
                if isDone { return (events, isComplete) }
            }
        }
    }
}
