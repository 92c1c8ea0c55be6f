// SPDX-License-Identifier: Apache-2.0

internal import Supervisor

extension ConnectionPolicy {
    /// The policy of a configured connection, with the defaults of its remote for what is not set. Not validated.
    init(_ settings: ConnectionSettings, owner: UInt32) throws(RemoteError) {
        self.init(remote: try Remote(settings.remote), user: PacketOwner.user(for: owner))
        keepAlive(settings.keepalive)
        opening = settings.opening
        // A program that reads its standard input knows nothing of flows: it goes on where the one before stopped, as a
        // server of inetd's does with the next message.
        keepsAbandonedFlow = settings.keepsAbandonedFlow ?? settings.wake?.usesStandardStreams ?? false
        if let makesBeforeBreak = settings.makesBeforeBreak { movesToBetterPath = makesBeforeBreak }
        if let initial = settings.backoff.initial { backoff.base = initial }
        if let factor = settings.backoff.factor { backoff.multiplier = factor }
        if let maximum = settings.backoff.maximum { backoff.ceiling = maximum }
        if let stableAfter = settings.backoff.stableAfter { self.stableAfter = stableAfter }
        if let connectTimeout = settings.connectTimeout { self.connectTimeout = connectTimeout }
        tls = settings.tls
        userTimeout = settings.userTimeout
        if let trafficClass = settings.trafficClass { self.trafficClass = trafficClass }
        if let priority = settings.priority { self.priority = priority }
        mark = settings.mark
    }
}

extension ConfigurationChecks {
    /// The checks of the daemon: remotes and policies as the supervisor takes them.
    static var daemon: ConfigurationChecks {
        ConfigurationChecks(
            remoteProblem: { text in
                do throws(RemoteError) {
                    _ = try Remote(text)
                    return nil
                } catch {
                    return "cannot be dialled: \(error)"
                }
            },
            policyProblem: { settings in
                // A remote that is none was reported by the check above.
                guard let policy = try? ConnectionPolicy(settings, owner: 0) else { return nil }
                do throws(PolicyError) {
                    try policy.validate()
                    return nil
                } catch {
                    return (key(of: error.field), error.reason)
                }
            })
    }

    /// The key in the file for a field of a policy.
    private static func key(of field: String) -> String {
        switch field {
        case "connectTimeout": "connect_timeout"
        case "userTimeout": "user_timeout"
        case "stableAfter": "backoff.stable_after"
        case "backoff.base": "backoff.initial"
        case "backoff.ceiling": "backoff.maximum"
        case "backoff.multiplier": "backoff.factor"
        case "keepalive.idle": "keepalive.interval"
        case "tls.serverName": "tls.server_name"
        case "tls.applicationProtocols": "tls.alpn"
        default: field
        }
    }
}
