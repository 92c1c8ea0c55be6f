// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneProcesses
internal import DialtoneConnection
package import DialtoneNetworkPath
package import DialtonePlatform
internal import Glibc

/// A TCP socket of this network namespace, as a line of `/proc/net/tcp` or `/proc/net/tcp6` has it (proc(5)).
package struct SocketEntry: Hashable, Sendable {
    package let local: IPAddress
    package let remote: IPAddress
    package let remotePort: UInt16
    /// What its links in `/proc/PID/fd` name it by.
    package let inode: UInt64

    /// Reads such a file. Sockets that listen are left out.
    package static func entries(in text: String) -> [SocketEntry] {
        text.utf8.split(separator: UInt8(ascii: "\n")).dropFirst().compactMap { line in
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 10).map { Substring($0) }
            guard fields.count > 9, let (local, _) = end(fields[1]), let (remote, port) = end(fields[2]), port != 0,
                let inode = UInt64(fields[9])
            else { return nil }
            return SocketEntry(local: local, remote: remote, remotePort: port, inode: inode)
        }
    }

    /// An address and a port. The address is in words of 32 bits, each with its bytes as the processor has them.
    private static func end(_ text: Substring) -> (IPAddress, UInt16)? {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let port = UInt16(parts[1], radix: 16) else { return nil }
        var bytes: [UInt8] = []
        var digits = parts[0].utf8
        while !digits.isEmpty {
            guard digits.count >= 8, let word = UInt32(Substring(digits.prefix(8)), radix: 16) else { return nil }
            withUnsafeBytes(of: word) { bytes += $0 }
            digits = digits.dropFirst(8)
        }
        return IPAddress(bytes: bytes).map { ($0.unmapped, port) }
    }
}

/// The TCP sockets of a process and of the processes that descend from it.
@AgentQueue
package final class ProcessSockets {
    /// So much of the kernel's list is read: some 400,000 sockets.
    private static let mostOfTable = 64 << 20

    /// The process at the top.
    private let process: Int32
    /// Those whose other ends are being asked, by their inodes, with the options that they had.
    private var asked: [UInt64: [CInt]] = [:]

    package init(of process: Int32) { self.process = process }

    /// Ends the sockets that are lost, and has the kernel ask the other ends of those in doubt.
    ///
    /// The owner of one that is ended reads the end of the stream, or its `connect` fails (shutdown(2)). The kernel
    /// ends one whose other end does not answer within ``patience``. Then the others are as they were.
    ///
    /// - Returns: how many were ended, and how many are asked now.
    /// - Throws: the kernel's refusal of a socket, as of ``visit(where:_:)``. The others are treated all the same.
    package func treat(
        by fate: (SocketEntry) -> WayChange.Fate
    ) throws(SystemError) -> (ended: Int, asked: Int) {
        var fates: [UInt64: WayChange.Fate] = [:]
        var (ended, begun) = (0, [UInt64: [CInt]]())
        let refusal = visit { entry in
            let fate = fate(entry)
            fates[entry.inode] = fate
            return fate == .lost || fate == .inDoubt && asked[entry.inode] == nil
        } _: { socket, inode in
            if fates[inode] == .lost {
                // ENOTCONN: it has lost its other end meanwhile.
                if shutdown(socket, CInt(SHUT_RDWR)) == 0 { ended += 1 }
            } else if let own = KeepaliveOption.values(of: socket) {
                begun[inode] = own
                KeepaliveOption.set(KeepaliveOption.allCases.map(\.urgent), of: socket)
            }
        }
        if !begun.isEmpty { restoreLater(begun) }
        if let refusal { throw refusal }
        return (ended, begun.count)
    }

    /// Puts the options of sockets that are being asked back to what they were, once ``patience`` is over.
    private func restoreLater(_ options: [UInt64: [CInt]]) {
        asked.merge(options) { $1 }
        // No copy is kept meanwhile: if the program closes its own, the other end is to see that.
        _ = Timers.shared.schedule(after: Self.patience + .seconds(1)) { [self] in
            for inode in options.keys { asked[inode] = nil }
            _ = visit {
                options[$0.inode] != nil
            } _: { socket, inode in
                if let own = options[inode] { KeepaliveOption.set(own, of: socket) }
            }
        }
    }

    /// How long another end may take: as long as that of an agent's own socket at most
    /// (``Liveness/longestVerification``).
    private static let patience = Liveness.longestVerification

    /// Calls `body` with a copy of each socket that `isMeant` says, and its inode. To get one takes the right to trace
    /// its owner (ptrace(2)), which a parent has of a child that did not become another user, and Linux 5.6.
    ///
    /// - Returns: the kernel's refusal, of the last socket that it refused.
    private func visit(where isMeant: (SocketEntry) -> Bool, _ body: (CInt, UInt64) -> Void) -> SystemError? {
        let entries = ["tcp", "tcp6"].flatMap {
            SocketEntry.entries(
                in: FileContent.text(of: "/proc/\(process)/net/\($0)", limit: Self.mostOfTable) ?? "")
        }
        var meant = Set(entries.filter(isMeant).map(\.inode))
        if meant.isEmpty { return nil }
        var refusal: SystemError?
        for process in ProcessTree.now.descendants(of: process) {
            do throws(SystemError) {
                for (number, inode) in try Self.descriptors(of: process) where meant.contains(inode) {
                    let socket = try copy(number, of: process)
                    // Its number may be another file's by now, and the process's another process's.
                    guard Self.inode(of: "/proc/self/fd/\(socket.number)") == inode else { continue }
                    meant.remove(inode)
                    body(socket.number, inode)
                }
            } catch {
                // It has ended, or closed it.
                if ![ENOENT, ESRCH, EBADF].contains(error.code) { refusal = error }
            }
        }
        return meant.isEmpty ? nil : refusal
    }

    private func copy(_ number: CInt, of process: Int32) throws(SystemError) -> OwnedDescriptor {
        let handle = OwnedDescriptor(
            try retryingInterrupts("watching process \(process)") { activation_open_process(process) })
        return OwnedDescriptor(
            try retryingInterrupts("taking a copy of a socket of process \(process)") {
                activation_copy_descriptor(handle.number, number)
            })
    }

    /// The sockets among a process's descriptors, with their inodes.
    private static func descriptors(of process: Int32) throws(SystemError) -> [(number: CInt, inode: UInt64)] {
        let path = "/proc/\(process)/fd"
        let directory = try DirectoryStream(path)
        var found: [(number: CInt, inode: UInt64)] = []
        while let name = directory.next() {
            if let number = CInt(name), let inode = inode(of: "\(path)/\(name)") { found.append((number, inode)) }
        }
        return found
    }

    private static func inode(of link: String) -> UInt64? {
        var characters = [CChar](repeating: 0, count: 64)
        let count = readlink(link, &characters, characters.count)
        let prefix = "socket:["
        guard count > prefix.utf8.count else { return nil }
        let text = String(decoding: characters[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.hasPrefix(prefix) ? UInt64(text.dropFirst(prefix.utf8.count).dropLast()) : nil
    }
}

/// What decides when the kernel asks the other end of an idle socket, and when it gives a socket up (tcp(7)).
private enum KeepaliveOption: CaseIterable {
    case isOn, idle, interval, count, patience

    private var name: (level: CInt, option: CInt) {
        switch self {
        case .isOn: (SOL_SOCKET, SO_KEEPALIVE)
        case .idle: (CInt(IPPROTO_TCP), TCP_KEEPIDLE)
        case .interval: (CInt(IPPROTO_TCP), TCP_KEEPINTVL)
        case .count: (CInt(IPPROTO_TCP), TCP_KEEPCNT)
        case .patience: (CInt(IPPROTO_TCP), TCP_USER_TIMEOUT)
        }
    }

    /// Asked after a second and then each second, for as long as patience goes; `TCP_USER_TIMEOUT` is in milliseconds,
    /// and counts for bytes that were sent before as well.
    var urgent: CInt {
        switch self {
        case .isOn, .idle, .interval: 1
        case .count: CInt(Liveness.longestVerification.components.seconds) - 1
        case .patience: CInt(Liveness.longestVerification.components.seconds) * 1000
        }
    }

    /// As they are, in this order.
    static func values(of socket: CInt) -> [CInt]? {
        let values = allCases.compactMap { socket.socketOption($0.name.option, at: $0.name.level) }
        return values.count == allCases.count ? values : nil
    }

    static func set(_ values: [CInt], of socket: CInt) {
        for (option, value) in zip(allCases, values) {
            socket.setSocketOption(option.name.option, at: option.name.level, to: value)
        }
    }
}
