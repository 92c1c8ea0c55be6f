// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
package import DialtoneConnection
internal import DialtonePlatform

/// The contexts that are in use, so that sessions of equal files share one. Threads may share it.
package final class TLSContexts: Sendable {
    /// What a context is made of; the rest of a policy belongs to each session.
    private struct Key: Hashable {
        let files: [FileStamp?]
        let trustsSystem: Bool
        let minimumVersion: TLSPolicy.Version
    }

    private struct Entry {
        weak var context: TLSContext?
    }

    /// Entries of contexts that nobody uses any more are dropped when there are this many; few machines have more than
    /// a handful of trust and identity files.
    private static let sweepSize = 16

    private let entries = Lock<[Key: Entry]>([:])

    /// No contexts yet.
    package init() {}

    /// Has OpenSSL read its configuration now, and make what it makes with the first session: later the process may not
    /// open a file.
    package static func prepare() {
        guard OpenSSL.isReady, let context = SSL_CTX_new(TLS_client_method()) else { return }
        SSL_free(SSL_new(context))
        SSL_CTX_free(context)
    }

    /// The context for a policy: the one that sessions of the same files share, or a new one if there is none or a file
    /// has changed since. Lives as long as a session, or a ``TLSResumption`` with one of its sessions, does.
    ///
    /// - Throws: what ``TLSContext/init(_:_:)`` does. Nothing is remembered of it: the next flow's files are read
    /// again.
    package func context(for policy: TLSPolicy, _ files: borrowing TLSFiles) throws(TLSFailure) -> TLSContext {
        let key = Key(
            files: files.stamps, trustsSystem: policy.authorities == nil, minimumVersion: policy.minimumVersion)
        if let context = entries.withLock({ $0[key]?.context }) { return context }
        // Not under the lock: two threads may make one each, and one of them is forgotten with its sessions.
        let context = try TLSContext(policy, files)
        entries.withLock { entries in
            if entries.count >= Self.sweepSize { entries = entries.filter { $0.value.context != nil } }
            entries[key] = Entry(context: context)
        }
        return context
    }
}
