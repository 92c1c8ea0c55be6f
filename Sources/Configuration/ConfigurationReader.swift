// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
package import DialtoneProcesses
internal import DialtoneTOML
internal import Glibc

/// What a load cannot know by itself.
package struct ConfigurationChecks: Sendable {
    /// A user's number by name; `nil` if there is no such user.
    package var userNumber: @Sendable (String) -> UInt32?
    /// What belongs to a user whose program is launched; `nil` if there is no such user.
    package var identity: @Sendable (UInt32) -> ProgramIdentity?
    /// The user that the daemon runs as.
    package var daemonUser: UInt32
    /// Whether the daemon is the machine's own service, of a user that is not root. A program of that user's would run
    /// in the service's sandbox and end with it, and could do what the daemon can; those of others the launcher
    /// launches.
    package var isMachineService = false

    /// The checks of a load. Users are looked up with getpwnam(3) unless told otherwise, which may ask the network:
    /// load off the agent's queue.
    package init(
        userNumber: @escaping @Sendable (String) -> UInt32? = systemUserNumber,
        identity: @escaping @Sendable (UInt32) -> ProgramIdentity? = { ProgramIdentity.lookUp($0) },
        daemonUser: UInt32? = nil
    ) {
        self.userNumber = userNumber
        self.identity = identity
        self.daemonUser = daemonUser ?? geteuid()
    }
}

/// The schema: from the tables of the files to a ``Configuration``. The limits of what the supervisor computes with are
/// its own, all others stand here.
struct ConfigurationReader {
    let checks: ConfigurationChecks
    let report: ConfigurationReport
    private(set) var configuration = Configuration()
    /// Where each name was used first.
    private var names: [String: ConfigurationIssue] = [:]

    init(_ checks: ConfigurationChecks, _ report: ConfigurationReport) {
        self.checks = checks
        self.report = report
    }

    /// Reads one parsed file: connections, and in the main file the rest.
    mutating func read(_ entries: [TOMLEntry], of file: String, isMain: Bool) {
        var root = TableReader(entries, of: file, at: TOMLPosition(line: 1, column: 1), path: "", report)
        for table in root.tables("connection") { readConnection(table) }
        if isMain {
            if let table = root.table("network") { configuration.network = readNetwork(table) }
            if let table = root.table("clients") { configuration.clients = readClients(table) }
            if let table = root.table("limits") { configuration.limits = readLimits(table) }
        } else {
            for key in ["network", "clients", "limits"] {
                guard let node = root.any(key) else { continue }
                root.error(key, node.position, "belongs in the main file; here only [[connection]] counts")
            }
        }
        root.finish()
    }

    private mutating func readConnection(_ table: TableReader) {
        var table = table
        let name = table.required("name")
        let remote = table.required("remote")
        var connection = ConnectionSettings(name: name?.value ?? "", remote: remote?.value ?? "")
        if let name { checkName(name, in: table) }
        connection.owner = readOwner(&table)
        let wake = table.table("wake")
        var settings = SettingsTable(table)
        connection.settings = ConnectionsAPI.Settings(from: &settings)
        settings.finish()
        let isOwnerKnown = connection.owner != nil || table.isAbsent("owner") && !settings.unread.mayContain("owner")
        if let wake { connection.wake = readWake(wake, owner: connection.owner, isOwnerKnown: isOwnerKnown) }
        let address = remote.flatMap { readRemote($0, in: table) }
        let check = SettingsCheck(
            connection.settings, to: address, owner: 0, wake: connection.wake, unread: settings.unread)
        for problem in check.problems { settings.report(problem) }
        configuration.connections.append(connection)
    }

    private mutating func checkName(_ name: Located<String>, in table: TableReader) {
        if let problem = ConnectionName.problem(name.value) {
            table.error("name", name.position, "\"\(name.value)\" \(problem)")
        } else if let first = names[name.value] {
            table.error("name", name.position, "\"\(name.value)\" is taken, at \(first.place)")
        } else {
            names[name.value] = ConfigurationIssue(table.file, name.position, nil, "")
        }
    }

    private func readRemote(_ remote: Located<String>, in table: TableReader) -> Remote? {
        do throws(RemoteError) {
            return try Remote(remote.value)
        } catch {
            let problem = remote.value.isEmpty ? "is empty" : "cannot be dialled: \(error)"
            table.error("remote", remote.position, "\"\(remote.value)\" \(problem)")
            return nil
        }
    }

    private func readOwner(_ table: inout TableReader) -> UInt32? {
        guard let node = table.any("owner") else { return nil }
        if case .integer = node.value {
            // The last number means "no user" to the kernel (setuid(2)).
            return table.integer("owner", 0...(UInt32.max - 1))
        }
        guard let name = table.string("owner", expected: "a user's name or number") else { return nil }
        if let number = checks.userNumber(name.value) { return number }
        table.error("owner", name.position, "there is no user \"\(name.value)\"")
        return nil
    }

    private func readNetwork(_ table: TableReader) -> NetworkSettings {
        var table = table
        var settings = NetworkSettings()
        settings.expensive = Set(readInterfaces("expensive", in: &table).map(\.value))
        let inexpensive = readInterfaces("inexpensive", in: &table)
        for name in inexpensive where settings.expensive.contains(name.value) {
            table.error("inexpensive", name.position, "\"\(name.value)\" is among the expensive ones, too")
        }
        settings.inexpensive = Set(inexpensive.map(\.value))
        settings.constrained = Set(readInterfaces("constrained", in: &table).map(\.value))
        table.finish()
        return settings
    }

    private func readInterfaces(_ key: String, in table: inout TableReader) -> [Located<String>] {
        let names = table.strings(key) ?? []
        for name in names where !Self.isInterfaceName(name.value) {
            table.error(key, name.position, "\"\(name.value)\" is no interface name")
        }
        return names
    }

    private func readClients(_ table: TableReader) -> ClientSettings {
        var table = table
        var settings = ClientSettings()
        for name in table.strings("other_namespaces") ?? [] {
            // A number in quotes is one as well: the daemon's refusal names the user by number.
            if let number = UInt32(name.value).flatMap({ $0 < .max ? $0 : nil }) ?? checks.userNumber(name.value) {
                settings.otherNamespaces.insert(number)
            } else {
                table.error("other_namespaces", name.position, "there is no user \"\(name.value)\"")
            }
        }
        table.finish()
        return settings
    }

    private func readLimits(_ table: TableReader) -> LimitSettings {
        var table = table
        var settings = LimitSettings()
        table.integer("connections_per_user", 1...100_000).map { settings.connectionsPerUser = $0 }
        table.integer("subscriptions_per_user", 1...10_000).map { settings.subscriptionsPerUser = $0 }
        // Less than a snapshot of a few hundred connections takes would drop every subscriber at once.
        table.integer("queued_bytes_per_user", 65_536...1 << 30).map { settings.queuedBytesPerUser = $0 }
        if let node = table.any("queued_bytes_per_user") {
            table.notice(
                "queued_bytes_per_user", node.position,
                "kept, but without effect: this version queues one message for a client, and a gap for what it missed")
        }
        table.finish()
        return settings
    }

    /// The kernel's rule (`dev_valid_name`): one to fifteen bytes, no slash, colon or white space, not `.` or `..`.
    private static func isInterfaceName(_ name: String) -> Bool {
        (1...15).contains(name.utf8.count) && name != "." && name != ".."
            && !name.contains { $0 == "/" || $0 == ":" || $0.isWhitespace }
    }
}
