// SPDX-License-Identifier: Apache-2.0

public import DialtoneAPI
public import DialtonePlatform
public import DialtoneVarlink

/// Why the daemon did not do what was asked: what was tried, what came back, and what to do about it.
public enum DialtoneError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Nobody listens on any of these paths.
    case notRunning(paths: [String])
    /// The socket is there, and the user may not connect to it.
    case accessDenied(path: String)
    /// The daemon has as many clients waiting as the kernel allows, and took none of them for a while.
    case busy(path: String)
    /// The kernel refused to connect for another reason.
    case unreachable(SystemError)
    /// The daemon answered a call of `method` with an error.
    case refused(method: String, VarlinkFailure)
    /// The connection ended before a call of `method` was answered. Whether it was carried out is not known.
    case interrupted(method: String, VarlinkCallError)
    /// A call of `method` was not answered in time. Whether it will be carried out is not known.
    case timedOut(method: String, Duration)
    /// The caller's task was cancelled.
    case cancelled

    /// What was tried, what came back and what to do, as a sentence for a person.
    public var description: String {
        switch self {
        case .notRunning(let paths) where paths.first == processEnvironment()[SocketPath.variable]:
            """
            The agent does not run on \(paths[0]), which \(SocketPath.variable) names. Start one there with \
            "dialtoned --socket \(paths[0])", or unset the variable to use the machine's.
            """
        case .notRunning(let paths):
            """
            The agent is not running: nothing listens on \(paths.joined(separator: " or ")). Start it with \
            "systemctl start dialtoned", or with "make run" in the source; \(SocketPath.variable) names another socket.
            """
        case .accessDenied(let path):
            """
            The agent's socket \(path) is not open to this user. It is open to the group dialtone: \
            "usermod -aG dialtone USER" lets a user in, from the next login on. SocketMode= and SocketGroup= in a \
            drop-in of dialtoned.socket open it to others.
            """
        case .busy(let path):
            "The agent at \(path) does not accept clients. See what it is doing with \"systemctl status dialtoned\"."
        case .unreachable(let error):
            "The agent cannot be reached: \(error)."
        case .refused(ConnectionsAPI.Close.name, let failure) where failure.isPermissionDenied:
            """
            A configuration file names this connection, and would bring it back. Take it out there, and have the \
            agent read its configuration again with "systemctl reload dialtoned".
            """
        case .refused(let method, let failure):
            failure.inWords ?? "The agent refused \(method): \(failure)."
        case .interrupted(let method, let error):
            """
            The agent did not answer \(method): \(error). See why with "journalctl -u dialtoned".
            """
        case .timedOut(let method, let limit):
            """
            The agent did not answer \(method) within \(limit). See what it is doing with "systemctl status \
            dialtoned".
            """
        case .cancelled:
            "The request was cancelled."
        }
    }
}

extension DialtoneError {
    /// Which error of `org.dialtone.Connections` the daemon answered with; `nil` for all other trouble.
    public var code: ConnectionsAPI.ErrorCode? {
        guard case .refused(_, let failure) = self else { return nil }
        return ConnectionsAPI.ErrorCode(rawValue: failure.name)
    }

    /// Whether waiting cures it: for a daemon that is started or restarted, that has room again, or that serves this
    /// user again.
    public var isPassing: Bool {
        switch self {
        case .notRunning, .busy, .timedOut: true
        case .interrupted(_, .hungUp), .interrupted(_, .failed): true
        case .interrupted(_, .violated), .interrupted(_, .refused), .interrupted(_, .closed): false
        case .refused(_, let failure): failure.isPassing
        case .accessDenied, .unreachable, .cancelled: false
        }
    }

    /// Whether this user, or nobody, may do what was asked; no waiting and no other value of it helps.
    public var isPermissionDenied: Bool {
        switch self {
        case .accessDenied: true
        case .refused(_, let failure): failure.isPermissionDenied
        case .notRunning, .busy, .unreachable, .interrupted, .timedOut, .cancelled: false
        }
    }
}

extension VarlinkFailure {
    /// Whether the daemon means it for a while alone.
    fileprivate var isPassing: Bool {
        switch ConnectionsAPI.ErrorCode(rawValue: name) {
        case .outOfResources, .suspended: true
        default: NetworkAPI.ErrorCode(rawValue: name) == .outOfResources
        }
    }

    /// Whether it is the error that every service has for what is not allowed.
    fileprivate var isPermissionDenied: Bool { decoded(as: ServiceAPI.PermissionDenied.self) != nil }

    /// The errors of the daemon's interfaces as sentences.
    fileprivate var inWords: String? {
        if let code = ConnectionsAPI.ErrorCode(rawValue: name) { return inWords(code) }
        if let code = NetworkAPI.ErrorCode(rawValue: name) { return inWords(code) }
        return inWordsOfVarlink
    }

    private func inWords(_ code: NetworkAPI.ErrorCode) -> String? {
        switch code {
        case .invalidTarget:
            decoded(as: NetworkAPI.InvalidTarget.self).map { "The target makes no sense: \($0.reason)." }
        case .foreignNetwork:
            decoded(as: NetworkAPI.ForeignNetwork.self).map { "The agent refuses: \($0.reason)." }
        case .outOfResources: decoded(as: NetworkAPI.OutOfResources.self).map { Self.shortage($0.reason) }
        case .quotaExceeded:
            decoded(as: NetworkAPI.QuotaExceeded.self).map {
                "This user has \($0.limit) subscriptions, and may have no more."
            }
        }
    }

    private static func shortage(_ reason: String) -> String {
        """
        The agent begins nothing new: \(reason). Close connections, or raise the limit (MemoryMax= or LimitNOFILE= of \
        dialtoned.service).
        """
    }

    private func inWords(_ code: ConnectionsAPI.ErrorCode) -> String? {
        switch code {
        case .noSuchConnection:
            decoded(as: ConnectionsAPI.NoSuchConnection.self).map {
                "There is no connection \"\($0.name)\". \"dialtone list\" lists all connections."
            }
        case .ambiguousName:
            decoded(as: ConnectionsAPI.AmbiguousName.self).map { error in
                let owners = error.owners.map(String.init).joined(separator: ", ")
                return "Several users have a connection \"\(error.name)\": \(owners). Say whose with --owner."
            }
        case .nameTaken:
            decoded(as: ConnectionsAPI.NameTaken.self).map {
                "This user has a connection \"\($0.name)\" already. Close it first, or choose another name."
            }
        case .notOwner:
            decoded(as: ConnectionsAPI.NotOwner.self).map {
                "The connection \"\($0.name)\" belongs to another user. Only that user and root may do this."
            }
        case .invalidRemote:
            decoded(as: ConnectionsAPI.InvalidRemote.self).map { "\"\($0.remote)\" cannot be dialled: \($0.reason)." }
        case .invalidOpening:
            decoded(as: ConnectionsAPI.InvalidOpening.self).map { "The opening cannot be played: \($0.reason)." }
        case .quotaExceeded:
            decoded(as: ConnectionsAPI.QuotaExceeded.self).map {
                "This user has \($0.limit) connections or subscriptions, and may have no more."
            }
        case .suspended:
            decoded(as: ConnectionsAPI.Suspended.self).map {
                "The agent does nothing for this user for another \($0.seconds) s: \($0.reason)."
            }
        case .outOfResources: decoded(as: ConnectionsAPI.OutOfResources.self).map { Self.shortage($0.reason) }
        case .foreignNetwork:
            decoded(as: ConnectionsAPI.ForeignNetwork.self).map { "The agent refuses: \($0.reason)." }
        case .staleEpoch, .notReady, .invalidTimeout, .heldByClient, .notTaken, .invalidDescriptor, .systemFailure:
            inWordsOfHandover(code)
        }
    }

    /// The errors of handing flows over, as sentences.
    private func inWordsOfHandover(_ code: ConnectionsAPI.ErrorCode) -> String? {
        switch code {
        case .staleEpoch:
            decoded(as: ConnectionsAPI.StaleEpoch.self).map {
                """
                This socket of the connection "\($0.name)" is over; its newest one is number \($0.epoch). Close this \
                one, and take the connection again.
                """
            }
        case .notReady:
            decoded(as: ConnectionsAPI.NotReady.self).map {
                """
                The connection "\($0.name)" has no socket for that: it is \(Self.words(for: $0.state)). \
                "dialtone watch \($0.name)" shows when that changes.
                """
            }
        case .invalidTimeout:
            decoded(as: ConnectionsAPI.InvalidTimeout.self).map {
                "This timeout makes no sense for the connection \"\($0.name)\": \($0.reason)."
            }
        case .heldByClient:
            decoded(as: ConnectionsAPI.HeldByClient.self).map { error in
                error.process > 0
                    ? "Process \(error.process) has the socket of \"\(error.name)\", until it parks it or ends."
                    : """
                    A process that cannot be seen from here has the socket of "\(error.name)", until it parks it. \
                    If it is gone: "dialtone redial \(error.name)".
                    """
            }
        case .notTaken:
            decoded(as: ConnectionsAPI.NotTaken.self).map {
                "Nobody has taken the socket of the connection \"\($0.name)\", so it cannot be parked."
            }
        case .invalidDescriptor:
            decoded(as: ConnectionsAPI.InvalidDescriptor.self).map {
                "What was to become the connection \"\($0.name)\" cannot be supervised: \($0.reason)."
            }
        case .systemFailure:
            decoded(as: ConnectionsAPI.SystemFailure.self).map { "The connection \"\($0.name)\": \($0.reason)." }
        default: nil
        }
    }

    /// Of a connection that is ready, the agent's login is what keeps others away.
    private static func words(for state: ConnectionsAPI.State) -> String {
        switch state {
        case .ready: "logging in"
        case .backingOff: "backing off"
        case .waiting, .resolving, .connecting, .securing, .verifying, .failed, .closed: state.rawValue
        }
    }

    /// The errors that every service has, as sentences.
    private var inWordsOfVarlink: String? {
        if let error: ServiceAPI.InvalidParameter = decoded() {
            return "The agent does not accept the parameter \"\(error.parameter)\", or not this value of it."
        }
        if let error: ServiceAPI.MethodNotFound = decoded() {
            return "The agent has no method \(error.method): it is older than this program."
        }
        if let error: ServiceAPI.InterfaceNotFound = decoded() {
            return
                "What listens there has no interface \(error.interface): it is not a Dialtone agent, or an older one."
        }
        if isPermissionDenied {
            return "The agent does not allow this user to do that."
        }
        return nil
    }
}
