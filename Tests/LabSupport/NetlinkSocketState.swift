// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// A socket of rtnetlink as the kernel lists it.
package struct NetlinkSocketState: Hashable, Sendable {
    /// Its address.
    package let port: UInt32
    /// How many messages found no room in its buffer.
    package let drops: Int

    /// Those in the calling thread's network, without the kernel's own.
    static func all() throws(SystemError) -> [NetlinkSocketState] {
        let path = "/proc/thread-self/net/netlink"
        let file = OwnedDescriptor(try retryingInterrupts("opening \(path)") { open(path, O_RDONLY | O_CLOEXEC) })
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = try retryingInterrupts("reading \(path)") { read(file.number, &buffer, buffer.count) }
            if count == 0 { break }
            text += buffer.prefix(count)
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").dropFirst().compactMap { Self(line: $0) }
    }

    /// A line: the socket's place in memory, protocol, port, groups, bytes queued and sent, dump, references, drops.
    private init?(line: Substring) {
        let fields = line.split(separator: " ")
        guard fields.count > 8, fields[1] == "\(NETLINK_ROUTE)", let port = UInt32(fields[2]), port != 0,
            let drops = Int(fields[8])
        else { return nil }
        self.port = port
        self.drops = drops
    }
}

extension Namespace {
    /// The sockets of rtnetlink that were opened on this machine.
    package func netlinkSockets() async throws -> [NetlinkSocketState] {
        try await run { try NetlinkSocketState.all() }
    }
}
