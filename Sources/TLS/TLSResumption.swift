// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL
internal import DialtoneConnection
internal import DialtonePlatform

/// The sessions that one connection may take up again with its next flow: tickets of TLS 1.3, sessions of 1.2.
///
/// A session is taken up only under the policy, the name and the files that it was made with, since its server shows no
/// certificate again; and not after that certificate's end. In memory alone: keys do not go to a disk.
///
/// Threads may share it: its sessions are guarded by a lock, and OpenSSL counts references to them atomically.
package final class TLSResumption: Sendable {
    /// Two, which is what servers commonly send after a handshake: one for the next flow and one for the flow after
    /// that, should the next die before it got new ones. A ticket of TLS 1.3 is used once (RFC 8446, appendix C.4).
    static let limit = 2

    private struct Sessions: @unchecked Sendable {
        /// What the sessions are good for.
        var request: TLSRequest?
        var context: TLSContext?
        var sessions: [OpaquePointer] = []

        mutating func forget() {
            for session in sessions { SSL_SESSION_free(session) }
            sessions = []
        }
    }

    private let kept = Lock(Sessions())

    /// No session yet.
    package init() {}

    deinit {
        forget()
    }

    /// Drops every session: the next handshake is a full one.
    package func forget() { kept.withLock { $0.forget() } }

    /// How many sessions are kept.
    var count: Int { kept.withLock { $0.sessions.count } }

    /// Gives a session that is about to be made the newest one that it may take up.
    func offer(to session: TLSSession) {
        kept.withLock { kept in
            if kept.request != session.request || kept.context !== session.context {
                kept.forget()
                kept.request = session.request
                kept.context = session.context
            }
            while let newest = kept.sessions.popLast() {
                let isOld = Certificate(SSL_SESSION_get0_peer(newest))?.isExpired ?? false
                guard SSL_SESSION_is_resumable(newest) == 1, !isOld else {
                    SSL_SESSION_free(newest)
                    continue
                }
                SSL_set_session(session.handle, newest)
                if SSL_SESSION_get_protocol_version(newest) == TLS1_3_VERSION {
                    SSL_SESSION_free(newest)
                } else {
                    // A session of TLS 1.2 may be taken up until its time is over, and is not sent anew.
                    kept.sessions.append(newest)
                }
                return
            }
        }
    }

    /// Keeps what arrived for later, in place of the oldest if there is too much. Whether the reference was taken over.
    func keep(_ arrived: OpaquePointer, of session: TLSSession) -> Bool {
        kept.withLock { kept in
            // Another policy since the flow was made: what the old one allowed does not count any more.
            guard kept.request == session.request, kept.context === session.context else { return false }
            if kept.sessions.count == Self.limit { SSL_SESSION_free(kept.sessions.removeFirst()) }
            kept.sessions.append(arrived)
            return true
        }
    }
}
