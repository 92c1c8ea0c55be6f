// SPDX-License-Identifier: Apache-2.0

package import Connection

extension ConnectionPolicy {
    /// The policy of a connection as its file or its client wants it, with the defaults of its remote for what is not
    /// set.
    ///
    /// - Parameters:
    ///   - owner: whose connection it is, and its packets.
    ///   - redials: whether there is somewhere to dial; not for a socket that was adopted alone.
    /// - Throws: the first field that is wrong.
    package init(
        _ settings: ConnectionSettings, to remote: Remote, owner: UInt32, redials: Bool = true
    ) throws(PolicyError) {
        let usual = remote.scheme.backoff
        try self.init(
            remote: remote,
            upkeep: settings.keepalive.upkeep(for: remote, under: settings.opening),
            backoff: BackoffPolicy(
                base: settings.backoff.initial ?? usual.base, multiplier: settings.backoff.factor ?? usual.multiplier,
                ceiling: settings.backoff.maximum ?? usual.ceiling, jitter: usual.jitter, spread: usual.spread),
            stableAfter: settings.backoff.stableAfter,
            connectTimeout: settings.connectTimeout,
            grace: settings.grace,
            userTimeout: settings.userTimeout,
            opening: settings.opening,
            tls: settings.tls,
            redials: redials,
            movesToBetterPath: settings.makesBeforeBreak,
            triesOtherUplinks: settings.triesOtherUplinks,
            // A program that reads its standard input knows nothing of flows: it goes on where the one before stopped,
            // as a server of inetd's does with the next message.
            keepsAbandonedFlow: settings.keepsAbandonedFlow ?? settings.wake?.usesStandardStreams,
            trafficClass: settings.trafficClass,
            priority: settings.priority,
            mark: settings.mark,
            user: PacketOwner.user(for: owner))
    }
}

extension ConfigurationChecks {
    /// The checks of the daemon: remotes and policies as the supervisor takes them.
    package static var daemon: ConfigurationChecks {
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
                guard let remote = try? Remote(settings.remote) else { return nil }
                do throws(PolicyError) {
                    _ = try ConnectionPolicy(settings, to: remote, owner: 0)
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
