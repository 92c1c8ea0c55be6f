// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Connection
internal import DialtoneAPI
internal import Glibc
internal import Varlink

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
        let settings = try ConnectionSettings(wire, to: remote, user: user)
        do throws(PolicyError) {
            try self.init(settings, to: remote, owner: user, redials: redials)
        } catch {
            throw error.field == "remote"
                ? VarlinkFailure(ConnectionsAPI.InvalidRemote(remote: wire.remote, reason: error.reason))
                : VarlinkFailure(
                    VarlinkService.InvalidParameter(parameter: "settings.\(Self.parameter(of: error.field))"))
        }
    }

    /// The parameter of `Open` for a field of a policy: what the caller can look up in the interface.
    private static func parameter(of field: String) -> String {
        switch field {
        case "connectTimeout": "connectTimeoutMilliseconds"
        case "userTimeout": "userTimeoutMilliseconds"
        case "grace": "graceMilliseconds"
        case "stableAfter": "backoff.stableAfterMilliseconds"
        case "backoff.base": "backoff.initialMilliseconds"
        case "backoff.ceiling": "backoff.maximumMilliseconds"
        case "backoff.multiplier": "backoff.factor"
        case "tls.applicationProtocols": "tls.alpn"
        case "keepalive.idle", "keepalive.interval": "keepalive.intervalMilliseconds"
        case "keepalive.tolerance": "keepalive.toleranceMilliseconds"
        default: field
        }
    }
}

extension ConnectionSettings {
    /// What a client asks for, as a file would say it. Not validated.
    fileprivate init(
        _ wire: ConnectionsAPI.Open.Parameters, to remote: Remote, user: UInt32
    ) throws(VarlinkFailure) {
        self.init(name: "", remote: wire.remote)
        let wire = wire.settings ?? .init()
        let isPrivileged = user == 0 || user == geteuid()
        if let wire = wire.keepalive { keepalive = try KeepaliveSettings(wire, mayWakeMachine: isPrivileged) }
        if let steps = wire.opening { opening = try Opening(steps) }
        keepsAbandonedFlow = wire.keepAbandoned
        makesBeforeBreak = wire.makeBeforeBreak
        triesOtherUplinks = wire.otherUplinks
        backoff.initial = wire.backoff?.initialMilliseconds.map { .milliseconds($0) }
        backoff.maximum = wire.backoff?.maximumMilliseconds.map { .milliseconds($0) }
        backoff.factor = wire.backoff?.factor
        backoff.stableAfter = wire.backoff?.stableAfterMilliseconds.map { .milliseconds($0) }
        if let wire = wire.tls { tls = try TLSPolicy(wire, for: remote.description, user: user) }
        connectTimeout = wire.connectTimeoutMilliseconds.map { .milliseconds($0) }
        userTimeout = wire.userTimeoutMilliseconds.map { .milliseconds($0) }
        grace = wire.graceMilliseconds.map { .milliseconds($0) }
        if let text = wire.trafficClass {
            guard let value = TrafficClass(text) else {
                throw VarlinkFailure(VarlinkService.InvalidParameter(parameter: "settings.trafficClass"))
            }
            trafficClass = value
        }
        priority = wire.priority
        if let number = wire.mark {
            guard let valid = UInt32(exactly: number) else {
                throw VarlinkFailure(VarlinkService.InvalidParameter(parameter: "settings.mark"))
            }
            // To set one takes a capability (socket(7)), for a mark leads past rules: out of a VPN, for instance. The
            // daemon does not lend its own; for another user's connection, root names one in the configuration.
            guard isPrivileged else { throw VarlinkFailure(VarlinkService.PermissionDenied()) }
            mark = valid
        }
    }
}
