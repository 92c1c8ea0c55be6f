// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// A ``StatusReason`` in a word, for programs: what is not told apart by it, programs need not tell apart. A raw value
/// is what subscribers and the history get, and stays.
package enum Cause: String, Hashable, Sendable, CaseIterable {
    // What was asked for.
    case opened, redialRequested, settingsChanged, closeRequested, nameConfigured
    // The way to the remote.
    case pathAvailable, pathMoved, noPath, noRoute, noCarrier, noAddress, gatewayUnreachable, prohibited, blackhole
    case unreachable, addressLost, resumed
    // The wait between attempts.
    case retryDue, heldBack, serverAsked
    // The remote's name.
    case nameNotFound, nameServerFailed, notOffered
    // The attempt to connect, and the end of a flow.
    case refused, reset, timedOut, hostUnreachable, forbidden, closedByRemote, keepaliveUnanswered, unverified
    case systemFailure
    // TLS.
    case untrusted, wrongName, expired, notYetValid, revoked, pinMismatch, clientCertificate, unusableFile, notTLS
    case tlsFailed, securingEnded, certificateEnds
    // What went well.
    case connected, replaced, detoured, verified
    // The login.
    case loggedIn, loginRefused, loginUnanswered
    // The client.
    case adopted, taken, parked, arrived, clientGone
    // The agent.
    case restarted, agentEnded
}

extension StatusReason {
    /// The same for programs.
    package var cause: Cause {
        switch self {
        case .opened: .opened
        case .noPath(let reason, _): reason.map { Cause($0) } ?? .noPath
        case .pathAvailable: .pathAvailable
        case .pathMoved: .pathMoved
        case .retryDue: .retryDue
        case .dialledTooOften, .awaitsTurn: .heldBack
        case .serverAsked: .serverAsked
        case .resolutionFailed(let failure): failure.cause
        case .dialFailed(let failure, _), .flowFailed(let failure): failure.cause
        case .connected: .connected
        case .replaced: .replaced
        case .detoured: .detoured
        case .resumed: .resumed
        case .unanswered: .keepaliveUnanswered
        case .unverified: .unverified
        case .verified: .verified
        case .remoteClosed: .closedByRemote
        case .endedAgain(let ending): ending.isReset ? .reset : .closedByRemote
        case .localAddressRemoved: .addressLost
        case .adopted: .adopted
        case .restarted: .restarted
        case .taken: .taken
        case .parked: .parked
        case .arrived: .arrived
        case .certificateEnds: .certificateEnds
        case .clientGone: .clientGone
        case .sessionOpened: .loggedIn
        case .openingFailed(let failure): failure.cause.isRefusal ? .loginRefused : .loginUnanswered
        case .redialRequested: .redialRequested
        case .policyChanged: .settingsChanged
        case .closeRequested: .closeRequested
        case .nameConfigured: .nameConfigured
        case .agentEnded: .agentEnded
        }
    }
}

extension Cause {
    fileprivate init(_ reason: Path.Reason) {
        self =
            switch reason {
            case .noRoute: .noRoute
            case .noCarrier: .noCarrier
            case .noAddress: .noAddress
            case .gatewayUnreachable: .gatewayUnreachable
            case .prohibited: .prohibited
            case .blackhole: .blackhole
            case .unreachable: .unreachable
            // As long as a name server answers, the name is the dial's business, and what that hears is the reason.
            case .nameUnresolved: .nameServerFailed
            }
    }
}

extension ResolutionFailure {
    fileprivate var cause: Cause {
        switch self {
        case .noSuchName, .noAddress: .nameNotFound
        case .notOffered: .notOffered
        case .heldBack: .heldBack
        case .temporary: .nameServerFailed
        }
    }
}

extension FlowFailure {
    fileprivate var cause: Cause {
        switch self {
        case .refused: .refused
        case .reset: .reset
        case .timedOut: .timedOut
        case .hostUnreachable: .hostUnreachable
        case .networkUnreachable: .noRoute
        case .addressNotAvailable: .noAddress
        case .forbidden: .forbidden
        case .heldBack: .heldBack
        case .tls(let failure): failure.cause
        case .securingEnded: .securingEnded
        case .other: .systemFailure
        }
    }
}

extension TLSFailure {
    fileprivate var cause: Cause {
        switch self {
        case .certificate(.expired): .expired
        case .certificate(.notYetValid): .notYetValid
        case .certificate(.wrongName), .unknownName: .wrongName
        case .certificate(.revoked), .certificate(.revocationUnknown): .revoked
        case .certificate(.pinMismatch): .pinMismatch
        case .certificate: .untrusted
        case .clientCertificateRequired, .clientCertificateRefused: .clientCertificate
        case .unusableFile: .unusableFile
        case .notTLS: .notTLS
        case .timedOut: .timedOut
        case .endedInHandshake, .truncated: .reset
        case .noCommonVersion, .noCommonCipher, .noCommonProtocol, .alert, .broken: .tlsFailed
        }
    }
}
