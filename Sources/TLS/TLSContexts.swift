// SPDX-License-Identifier: Apache-2.0

public import Connection
public import Platform

/// The contexts that are in use, so that connections of equal files share one.
@AgentQueue
public final class TLSContexts {
    /// What of a policy a context is made of; the rest belongs to each session.
    private struct Key: Hashable {
        let authorities: String?
        let identity: TLSPolicy.Identity?
        let minimumVersion: TLSPolicy.Version

        init(_ policy: TLSPolicy) {
            authorities = policy.authorities
            identity = policy.identity
            minimumVersion = policy.minimumVersion
        }
    }

    private struct Entry {
        weak var context: TLSContext?
    }

    /// Entries of contexts that nobody uses any more are dropped when there are this many; few machines have more than
    /// a handful of trust and identity files.
    private static let sweepSize = 16

    private var entries: [Key: Entry] = [:]

    /// No contexts yet.
    public nonisolated init() {}

    /// The context for a policy: the one that sessions of the same files share, or a new one if there is none or a file
    /// has changed since. Lives as long as a session, or a ``TLSResumption`` with one of its sessions, does.
    ///
    /// Local files are read within this call, as the hosts file is with a name: a few stat(2) in most dials.
    ///
    /// - Throws: what ``TLSContext/init(_:)`` does. Nothing is remembered of it: the next dial reads the files again.
    public func context(for policy: TLSPolicy) throws(TLSFailure) -> TLSContext {
        let key = Key(policy)
        if let context = entries[key]?.context, context.isCurrent { return context }
        let context = try TLSContext(policy)
        if entries.count >= Self.sweepSize { entries = entries.filter { $0.value.context != nil } }
        entries[key] = Entry(context: context)
        return context
    }
}
