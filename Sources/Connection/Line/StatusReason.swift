// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// Why a connection is in the state it is in.
///
/// What says more than a word is out of line: a reason is kept with each connection, and twice in each of its events.
package enum StatusReason: Hashable, Sendable {
    /// Supervision began, and the path is being asked for.
    case opened
    /// No path leads to the remote.
    indirect case noPath(Path.Reason?, destination: IPAddress?)
    /// A path is there, for the first time or again.
    case pathAvailable
    /// The path leads another way than before.
    case pathMoved
    /// The wait is over.
    case retryDue
    /// The connection was dialled too often in a short time; the next dial waits a moment.
    case dialledTooOften
    /// The user's connections were dialled too often in a short time, all together; this one's turn is yet to come.
    case awaitsTurn
    /// The server asked to be left alone for a while.
    case serverAsked
    /// The name gave no address.
    case resolutionFailed(ResolutionFailure)
    /// No address of the remote could be connected to; the most telling of the failures, and whose it was.
    indirect case dialFailed(FlowFailure, Endpoint)
    /// The flow's two ends were connected, and the flow stands.
    case connected
    /// A flow over a better path took the place of the one that stood.
    case replaced
    /// A flow over another uplink stands: nothing got through over the interface of this name.
    indirect case detoured(around: String)
    /// The machine woke from suspend.
    case resumed
    /// The server did not answer a keepalive in time.
    case unanswered
    /// After a change of the path or a suspend, nothing showed that the server can still be reached.
    case unverified
    /// A round trip was made: the flow had outlived the change of the path or the suspend.
    case verified
    /// The remote ended the flow in order.
    case remoteClosed
    /// The remote ended the flow at the same age as the ones before it.
    indirect case endedAgain(RepeatedEnding.Report)
    /// The flow broke.
    indirect case flowFailed(FlowFailure)
    /// The flow's local address is gone from this machine.
    indirect case localAddressRemoved(IPAddress)
    /// A client brought the flow.
    case adopted
    /// The agent was started anew.
    case restarted(Restart)
    /// A client has taken the flow.
    case taken
    /// The client gave the flow back, with a session on it.
    case parked
    /// Bytes for the client wait.
    case arrived
    /// The certificate by which the flow's ends know each other ends soon.
    indirect case certificateEnds(TLSSummary.CertificateEnd)
    /// The client that had the flow is gone without having parked it.
    case clientGone
    /// The agent logged in on the flow: every step of the opening exchange was answered as expected.
    case sessionOpened
    /// The opening exchange did not come about.
    indirect case openingFailed(OpeningFailure)
    /// A user asked for a new flow.
    case redialRequested
    /// A user gave the connection another policy.
    case policyChanged
    /// A user ended the connection.
    case closeRequested
    /// The configuration names a connection of the same name and owner, and took this one's place.
    case nameConfigured
    /// The agent was told to end, and the connection ends with it.
    case agentEnded
}

extension StatusReason {
    /// Whether a dial or a flow failed of it. What makes a connection wait without having failed is none.
    var isFailure: Bool {
        switch self {
        case .resolutionFailed, .dialFailed, .unanswered, .unverified, .remoteClosed, .endedAgain, .flowFailed,
            .openingFailed:
            true
        case .opened, .noPath, .pathAvailable, .pathMoved, .retryDue, .dialledTooOften, .awaitsTurn, .serverAsked,
            .connected, .replaced, .detoured, .resumed, .verified, .localAddressRemoved, .adopted, .restarted,
            .taken, .parked, .arrived, .certificateEnds, .clientGone, .sessionOpened, .redialRequested, .policyChanged,
            .closeRequested, .nameConfigured, .agentEnded:
            false
        }
    }

    /// Whether the server, or somebody in its name, ended a flow: a reset is its word, too.
    package var isServersEnding: Bool {
        if case .endedAgain = self { return true }
        return self == .remoteClosed || self == .flowFailed(.reset)
    }

    /// Whether the server ended a flow as it ended the one before, and did so for the first time.
    package var isFirstRepetition: Bool {
        if case .endedAgain(let ending) = self { ending.times == 2 } else { false }
    }

    /// Whether a dial or a flow failed of nothing getting through to the server, or back.
    var isSilence: Bool {
        if case .dialFailed(let failure, _) = self { return failure.isSilence }
        if case .flowFailed(let failure) = self { return failure.isSilence }
        return self == .unanswered || self == .unverified
    }
}

extension StatusReason: CustomStringConvertible {
    /// In the words of the status line; never ends in a full stop.
    package var description: String {
        switch self {
        case .opened: "opened"
        case .noPath(let reason, let destination): Self.text(reason, destination)
        case .pathAvailable: "network available"
        case .pathMoved: "route changed"
        case .retryDue: "retrying"
        case .dialledTooOften: "dialled too often in a short time"
        case .resolutionFailed(let failure): failure.description
        case .dialFailed(.refused, let endpoint): "refused by \(endpoint)"
        case .dialFailed(let failure, let endpoint): "\(endpoint): \(failure)"
        case .awaitsTurn: "waits its turn: this user dials too often at the moment"
        case .serverAsked: "the server asked to be left alone"
        case .connected: "connected"
        case .replaced: "moved to a better path"
        case .detoured(let interface): "nothing gets through over \(interface): uses another uplink"
        case .resumed: "this machine slept"
        case .unanswered: "the server did not answer a keepalive"
        case .unverified: "the server does not answer any more"
        case .verified: "the server is still there"
        case .remoteClosed: "closed by the server"
        case .endedAgain(let ending): ending.description
        case .flowFailed(let failure): failure.description
        case .localAddressRemoved(let address): "source \(address) is gone"
        case .adopted: "a client brought the socket"
        case .restarted(.kept): "the agent restarted and goes on with the socket"
        case .restarted(.openingCut): "the agent restarted in the middle of the login"
        case .restarted(.flowLost): "the agent restarted, and the socket was lost"
        case .restarted(.withoutFlow): "the agent restarted"
        case .taken: "taken by a client"
        case .parked: "parked by its client"
        case .arrived: "data arrived for the client"
        case .certificateEnds(let end): end.description
        case .clientGone: "its client is gone and did not park it"
        case .sessionOpened: "logged in for its client"
        case .openingFailed(let failure): failure.description
        case .redialRequested: "redial requested"
        case .policyChanged: "policy changed"
        case .closeRequested: "close requested"
        case .agentEnded: "the agent was stopped"
        case .nameConfigured: "the configuration has a connection of this name"
        }
    }

    private static func text(_ reason: Path.Reason?, _ destination: IPAddress?) -> String {
        let target = destination.map { " to \($0)" } ?? ""
        return switch reason {
        case .noRoute: "no route\(target)"
        case .noCarrier: "no carrier\(target)"
        case .noAddress: "no source address\(target)"
        case .gatewayUnreachable: "the gateway\(target) does not answer"
        case .prohibited: "prohibited by a route or rule\(target)"
        case .blackhole: "swallowed by a blackhole route or rule\(target)"
        case .unreachable: "declared unreachable by a route\(target)"
        // With a name server that answers, a connection dials.
        case .nameUnresolved: "no name server answers"
        case nil: "no path\(target)"
        }
    }

    /// What a user can do about it, where the agent alone cannot help; `nil` otherwise.
    package var advice: String? {
        switch self {
        case .resolutionFailed(.notOffered):
            "the domain's SRV record says that it does not offer this service; write a port to dial the host itself"
        case .resolutionFailed(.noSuchName), .resolutionFailed(.noAddress):
            "check the name in the connection's remote and in the DNS; asked again within 30 minutes, "
                + "on every change of the network and on redial"
        case .dialFailed(.refused, _):
            "check that the server runs and that the port is right"
        case .dialFailed(.forbidden, _):
            "check this machine's firewall and its prohibit routes"
        case .openingFailed(let failure) where failure.isLasting:
            "check what the opening says and expects, the password in it first; tried again within 30 minutes, at once "
                + "when it changes and on redial"
        case .dialFailed(.tls(let failure), _), .flowFailed(.tls(let failure)):
            failure.advice
        case .endedAgain(let ending) where ending.lacksLogin:
            "the server expects a login: give the connection an opening, or have a client take it and log in"
        case .opened, .noPath, .pathAvailable, .pathMoved, .retryDue, .dialledTooOften, .awaitsTurn, .serverAsked,
            .resolutionFailed, .dialFailed, .connected, .replaced, .detoured, .resumed, .unanswered, .unverified,
            .verified, .remoteClosed, .endedAgain, .flowFailed, .localAddressRemoved, .adopted, .restarted, .taken,
            .parked, .arrived, .certificateEnds, .clientGone, .sessionOpened, .openingFailed, .redialRequested,
            .policyChanged, .closeRequested, .nameConfigured, .agentEnded:
            nil
        }
    }
}

extension RepeatedEnding.Report: CustomStringConvertible {
    package var description: String {
        "\(isReset ? "reset" : "closed") by the server \(times) times in a row, each time after about \(age.short)"
            + (lacksLogin ? ", not logged in" : "")
    }
}
