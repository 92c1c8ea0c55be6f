// SPDX-License-Identifier: Apache-2.0

/// Why a socket did not connect or did not stay connected: the kernel's error, sorted by what it means for the next
/// dial.
package enum FlowFailure: Error, Hashable, Sendable {
    /// The host is there and nothing listens on the port (`ECONNREFUSED`).
    case refused
    /// The remote broke the connection (`ECONNRESET`, `ECONNABORTED`, `EPIPE`).
    case reset
    /// Nobody answered in time (`ETIMEDOUT`, or the connect timeout).
    case timedOut
    /// A router, or the neighbour table, says that the host cannot be reached (`EHOSTUNREACH`, `EHOSTDOWN`).
    case hostUnreachable
    /// This machine has no route there (`ENETUNREACH`, `ENETDOWN`).
    case networkUnreachable
    /// The source address is not on this machine (any more, or not yet usable) (`EADDRNOTAVAIL`).
    case addressNotAvailable
    /// A firewall or a routing rule of this machine forbids it (`EACCES`, `EPERM` from `connect`).
    case forbidden
    /// Not tried: a budget is used up.
    case heldBack(HeldBack)
    /// TLS did not come about, or ended. Indirect, because it is rare and large.
    indirect case tls(TLSFailure)
    /// The process that does TLS for this one, `dialtone-tls`, ended, and the keys with it.
    case securingEnded
    /// Anything else, with the kernel's number and what was tried and came back.
    case other(code: Int32, text: String)

    /// Whether nothing got through to the remote, or back. A proxy on the way can answer a connect in the remote's
    /// name; a handshake comes from the remote alone.
    var isSilence: Bool {
        switch self {
        case .timedOut, .hostUnreachable, .networkUnreachable, .tls(.timedOut): true
        case .refused, .reset, .addressNotAvailable, .forbidden, .heldBack, .tls, .securingEnded, .other: false
        }
    }

    /// Whether the network of this machine failed rather than the remote: no packet got there.
    var isLocal: Bool {
        switch self {
        case .hostUnreachable, .networkUnreachable, .addressNotAvailable, .heldBack: true
        case .refused, .reset, .timedOut, .forbidden, .tls, .securingEnded, .other: false
        }
    }
}

extension FlowFailure: CustomStringConvertible {
    /// In the words of the status line.
    package var description: String {
        switch self {
        case .refused: "refused"
        case .reset: "reset by the server"
        case .timedOut: "no answer in time"
        case .hostUnreachable: "host unreachable"
        case .networkUnreachable: "network unreachable"
        case .addressNotAvailable: "source address not available"
        case .forbidden: "forbidden by this machine's firewall or routing rules"
        case .heldBack(.byUser): "not tried, too many dials of this user at the moment"
        case .heldBack(.byServer): "not tried, too many dials of this user to this server at the moment"
        case .tls(let failure): failure.description
        case .securingEnded: "dialtone-tls, which has the keys, ended"
        case .other(_, let text): text
        }
    }
}

/// Why a name gave no address.
package enum ResolutionFailure: Error, Hashable, Sendable {
    /// The name does not exist (NXDOMAIN).
    case noSuchName
    /// The name exists and has no address.
    case noAddress
    /// The domain says that it does not offer the service (RFC 2782: a target of ".").
    case notOffered
    /// Not asked: the user's budget of questions is used up.
    case heldBack
    /// No server could be asked, or none answered usefully (SERVFAIL, REFUSED, a timeout). It may well later.
    case temporary
}

extension ResolutionFailure: CustomStringConvertible {
    /// In the words of the status line.
    package var description: String {
        switch self {
        case .noSuchName: "the name does not exist"
        case .noAddress: "the name has no address"
        case .notOffered: "the domain does not offer the service"
        case .heldBack: "not asked, too many DNS questions of this user at the moment"
        case .temporary: "the name server gives no answer"
        }
    }
}
