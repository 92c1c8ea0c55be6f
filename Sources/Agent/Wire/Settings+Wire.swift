// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtoneVarlink
internal import Glibc

extension ConnectionPolicy {
    /// The policy that a client asks for, for packets of that client's user.
    ///
    /// - Parameter redials: whether there is somewhere to dial; not for a socket that was adopted alone.
    init(_ wire: ConnectionsAPI.Open.Parameters, user: UInt32, redials: Bool = true) throws(VarlinkFailure) {
        let remote: Remote
        do throws(RemoteError) {
            remote = try Remote(wire.remote)
        } catch {
            throw VarlinkFailure(ConnectionsAPI.InvalidRemote(remote: wire.remote, reason: error.description))
        }
        let settings = wire.settings ?? .init()
        try settings.checkPrivileges(of: user, for: wire.remote)
        let check = SettingsCheck(settings, to: remote, owner: user, redials: redials)
        guard let policy = check.policy else { throw VarlinkFailure(check.problems) }
        self = policy
    }
}

extension VarlinkFailure {
    /// The first of them that is wrong, by the name that the caller can look up in the interface.
    ///
    /// - Parameter object: where the fields stand in the call, with a dot.
    init(_ problems: [SettingsProblem], in object: String = "settings.") {
        let problem = problems.first { !$0.isHarmless }
        let field = problem?.field ?? ""
        if field.hasPrefix("opening") {
            self.init(ConnectionsAPI.InvalidOpening(reason: Self.step(field) + (problem?.reason ?? "")))
        } else {
            self.init(ServiceAPI.InvalidParameter(parameter: object + field))
        }
    }

    /// "step 2, until: " for "opening[1].expect.until".
    private static func step(_ field: String) -> String {
        let parts = field.split { "[].".contains($0) }
        guard parts.count > 2, let index = Int(parts[1]) else { return "" }
        return "step \(index + 1), \(parts.last { Int($0) == nil } ?? ""): "
    }
}

extension ConnectionsAPI.Settings {
    /// Throws where the user may not have such settings: the daemon does not lend its rights.
    fileprivate func checkPrivileges(of user: UInt32, for remote: String) throws(VarlinkFailure) {
        if user == 0 || user == geteuid() { return }
        // To set a mark takes a capability (socket(7)), for it leads past rules: out of a VPN, for instance. For the
        // connection of another user, root names one in the configuration. To wake the machine takes one as well
        // (CAP_WAKE_ALARM).
        guard mark == nil, keepalive?.wakeMachine != true else {
            throw VarlinkFailure(ServiceAPI.PermissionDenied())
        }
        // The daemon reads files with its own rights, which may be more than the client's. The text of a failure would
        // tell the client about files that it cannot see, and every client could use every key.
        guard tls?.ca == nil, tls?.certificate == nil else {
            throw VarlinkFailure(
                ConnectionsAPI.InvalidRemote(
                    remote: remote,
                    reason: "files for TLS can be named in the configuration alone: ask the administrator for a "
                        + "[[connection]] with tls = { … } and owner = \(user)"))
        }
    }
}
