// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform

/// How this host is configured to look names up, and when that changes.
///
/// Nothing is polled: a file is read again when inotify(7) tells of it or of a link on the way to it.
@AgentQueue
package final class NameConfigurationWatch {
    /// What of the configuration differs.
    package struct Change: OptionSet, Hashable, Sendable {
        /// One bit per part.
        package let rawValue: UInt8

        /// Parts from their bits.
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The list of name servers, or its order.
        package static let servers = Change(rawValue: 1)
        /// How they are asked, or what else is: search domains, options, the order of sources. Every name may have
        /// other addresses.
        package static let search = Change(rawValue: 2)
        /// The hosts file.
        package static let hosts = Change(rawValue: 4)
    }

    /// The configured servers, in the order of the file; empty when there is none.
    package private(set) var servers: [NameServer] = []
    private var rules: [[Substring]] = []
    private var order = NameOrder.usual
    private var hosts = FileVersion(of: "")
    private let files: NameFiles
    private let handler: @AgentQueue (Change) -> Void
    private var watch: FileWatch?

    /// Reads the configuration and calls `handler`, on the agent's queue, whenever it differs from before; not for what
    /// it is at first. A file that was written again with the same content is no change.
    ///
    /// Where the kernel refuses an inotify instance (a user's are limited), the configuration stays that of the start;
    /// ``refresh()`` reads it again.
    package init(_ files: NameFiles = NameFiles(), _ handler: @escaping @AgentQueue (Change) -> Void) {
        self.files = files
        self.handler = handler
        watch = try? FileWatch([files.resolvConf, files.hosts, files.nsswitch]) { [weak self] in self?.read($0) }
        // Read once the watch stands, so that no change falls between the two.
        _ = update([files.resolvConf, files.hosts, files.nsswitch])
    }

    /// Ends the watch. No call of the handler follows.
    package func cancel() {
        watch?.cancel()
        watch = nil
    }

    /// Reads everything again, for those who have reason to doubt that they were told of all changes.
    package func refresh() {
        read([files.resolvConf, files.hosts, files.nsswitch])
    }

    private func read(_ paths: Set<String>) {
        let change = update(paths)
        if !change.isEmpty { handler(change) }
    }

    /// Takes over what `paths` say now, and returns what of it is new.
    private func update(_ paths: Set<String>) -> Change {
        var change: Change = []
        if paths.contains(files.resolvConf) {
            let text = files.readResolvConf()
            let present = nameServers(inConfiguration: text)
            if present != servers { change.insert(.servers) }
            servers = present
            let presentRules = meaning(ofConfiguration: text).filter { $0.first != "nameserver" }
            if presentRules != rules { change.insert(.search) }
            rules = presentRules
        }
        if paths.contains(files.nsswitch) {
            let present = files.readOrder()
            if present != order { change.insert(.search) }
            order = present
        }
        if paths.contains(files.hosts) {
            let present = FileVersion(of: files.hosts)
            if present != hosts { change.insert(.hosts) }
            hosts = present
        }
        return change
    }
}
