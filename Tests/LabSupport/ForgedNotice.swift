// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// A message such as the kernel sends, from one who is not the kernel.
package struct ForgedNotice: Sendable {
    private let bytes: [UInt8]

    /// "This link is gone."
    package static func linkRemoved(index: Int) -> ForgedNotice {
        var header = nlmsghdr()
        var link = ifinfomsg()
        header.nlmsg_len = UInt32(MemoryLayout.size(ofValue: header) + MemoryLayout.size(ofValue: link))
        header.nlmsg_type = UInt16(RTM_DELLINK)
        link.ifi_index = CInt(index)
        return ForgedNotice(bytes: withUnsafeBytes(of: header, Array.init) + withUnsafeBytes(of: link, Array.init))
    }

    /// Sends it to every socket of rtnetlink on a machine, and returns how many there are. Takes `CAP_NET_ADMIN`.
    @discardableResult
    package func sendToAll(on machine: Namespace) async throws -> Int {
        try await machine.run {
            let number = try retryingInterrupts("opening a netlink socket") {
                socket(AF_NETLINK, CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), NETLINK_ROUTE)
            }
            let descriptor = OwnedDescriptor(number)
            let sockets = try NetlinkSocketState.all()
            for socket in sockets { try send(to: socket.port, by: descriptor.number) }
            return sockets.count
        }
    }

    private func send(to port: UInt32, by descriptor: CInt) throws(SystemError) {
        var receiver = sockaddr_nl()
        receiver.nl_family = sa_family_t(AF_NETLINK)
        receiver.nl_pid = port
        try retryingInterrupts("sending to netlink port \(port)") {
            withUnsafeBytes(of: &receiver) { address in
                sendto(
                    descriptor, bytes, bytes.count, 0, address.assumingMemoryBound(to: sockaddr.self).baseAddress,
                    socklen_t(address.count))
            }
        }
    }
}
