// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import Glibc
internal import Supervisor
internal import Varlink

extension ConnectionPolicy {
    /// The policy that a client asks for, for packets of that client's user.
    init(_ wire: ConnectionsAPI.Open.Parameters, user: UInt32) throws(VarlinkFailure) {
        let remote: Remote
        do throws(RemoteError) {
            remote = try Remote(wire.remote)
        } catch {
            throw VarlinkFailure(ConnectionsAPI.InvalidRemote(remote: wire.remote, reason: error.description))
        }
        self.init(remote: remote, user: PacketOwner.user(for: user))
        if let keepalive = wire.keepalive {
            self.keepalive = try KeepalivePolicy.make(
                protocol: keepalive.protocol, interval: Self.duration(keepalive.intervalMilliseconds))
        }
        if let backoff = wire.backoff {
            if let base = backoff.baseMilliseconds { self.backoff.base = .milliseconds(base) }
            if let maximum = backoff.maximumMilliseconds { self.backoff.ceiling = .milliseconds(maximum) }
            if let multiplier = backoff.multiplier { self.backoff.multiplier = multiplier }
            if let stable = backoff.stableAfterMilliseconds { stableAfter = .milliseconds(stable) }
        }
        if let wire = wire.tls { tls = try TLSPolicy(wire, for: remote.description, user: user) }
        userTimeout = Self.duration(wire.userTimeoutMilliseconds)
        if let mark = wire.mark {
            guard let valid = UInt32(exactly: mark) else {
                throw VarlinkFailure(VarlinkService.InvalidParameter(parameter: "mark"))
            }
            // To set one takes a capability (socket(7)), for a mark leads past rules: out of a VPN, for instance. The
            // daemon does not lend its own; for another user's connection, root names one in the configuration.
            guard user == 0 || user == geteuid() else { throw VarlinkFailure(VarlinkService.PermissionDenied()) }
            self.mark = valid
        }
        do throws(PolicyError) {
            try validate()
        } catch {
            throw error.field == "remote"
                ? VarlinkFailure(ConnectionsAPI.InvalidRemote(remote: wire.remote, reason: error.reason))
                : VarlinkFailure(VarlinkService.InvalidParameter(parameter: Self.parameter(of: error.field)))
        }
    }

    /// The parameter of `Open` for a field of a policy: what the caller can look up in the interface.
    private static func parameter(of field: String) -> String {
        switch field {
        case "userTimeout": "userTimeoutMilliseconds"
        case "stableAfter": "backoff.stableAfterMilliseconds"
        case "backoff.base": "backoff.baseMilliseconds"
        case "backoff.ceiling": "backoff.maximumMilliseconds"
        case "keepalive.idle": "keepalive.intervalMilliseconds"
        default: field
        }
    }

    private static func duration(_ milliseconds: Int?) -> Duration? {
        milliseconds.map { .milliseconds($0) }
    }
}

extension KeepalivePolicy {
    /// The kernel's keepalive that stands for a keepalive by `protocol`; `nil` for none.
    ///
    /// The protocols' own pings are not spoken yet (docs/limitations.md): the kernel's probes at the same interval keep
    /// the NATs' mappings and find a dead peer just as well; what they do not find is a live kernel under a dead
    /// server.
    static func make(protocol: String, interval: Duration?) throws(VarlinkFailure) -> KeepalivePolicy? {
        switch `protocol` {
        case "none": return nil
        case "tcp", "crlf", "whitespace", "xmpp-ping", "mqtt", "websocket":
            return interval.map { KeepalivePolicy(idle: $0) } ?? KeepalivePolicy()
        default: throw VarlinkFailure(VarlinkService.InvalidParameter(parameter: "keepalive.protocol"))
        }
    }
}
