// SPDX-License-Identifier: Apache-2.0

internal import Glibc
public import NetworkPath
public import Platform

/// The name servers that this host is configured with, and when they change.
///
/// Nothing is polled: resolv.conf is read again when inotify(7) tells of it or of a link on the way to it.
@AgentQueue
public final class NameServerWatch {
    /// More than any resolv.conf holds (glibc uses three servers of it); a larger file is read this far.
    private nonisolated static let sizeLimit = 64 * 1024

    /// The configured servers, in the order of the file; empty when there is none.
    public private(set) var servers: [IPAddress]
    private let file: String
    private let handler: @AgentQueue ([IPAddress]) -> Void
    private var watch: FileWatch?

    /// Reads the servers and calls `handler` with the new list, on the agent's queue, whenever it differs from the one
    /// before; not with the present list.
    ///
    /// - Throws: the kernel's refusal of an inotify instance, such as `EMFILE`.
    public init(
        file: String = "/etc/resolv.conf", _ handler: @escaping @AgentQueue ([IPAddress]) -> Void
    ) throws(SystemError) {
        self.file = file
        self.handler = handler
        servers = []
        watch = try FileWatch(file) { [weak self] in self?.fileMayHaveChanged() }
        // Read once the watch stands, so that no change falls between the two.
        servers = Self.servers(in: file)
    }

    /// Ends the watch. No call of the handler follows.
    public func cancel() {
        watch?.cancel()
        watch = nil
    }

    private func fileMayHaveChanged() {
        let present = Self.servers(in: file)
        guard present != servers else { return }
        servers = present
        handler(present)
    }

    /// The configured servers as they are now: for those who get no watch.
    public nonisolated static func servers(in file: String = "/etc/resolv.conf") -> [IPAddress] {
        let number = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard number >= 0 else { return [] }
        let descriptor = OwnedDescriptor(number)
        return withUnsafeTemporaryAllocation(byteCount: sizeLimit, alignment: 1) { buffer in
            let count = Glibc.read(descriptor.number, buffer.baseAddress, buffer.count)
            return nameServers(inConfiguration: String(decoding: buffer[..<max(0, count)], as: UTF8.self))
        }
    }
}
