// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
public import Platform
public import Varlink

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
        case .notRunning(let paths):
            """
            No Dialtone daemon listens on \(paths.joined(separator: " or ")). Start it with \
            "systemctl start dialtoned", or with "make run" in the source; \(SocketPath.variable) names another socket.
            """
        case .accessDenied(let path):
            """
            The daemon's socket \(path) is not open to this user. It is open to the group dialtone: \
            "usermod -aG dialtone USER" lets a user in, from the next login on. SocketMode= and SocketGroup= in a \
            drop-in of dialtoned.socket open it to others.
            """
        case .busy(let path):
            "The daemon at \(path) does not accept clients. See what it is doing with \"systemctl status dialtoned\"."
        case .unreachable(let error):
            "The daemon cannot be reached: \(error)."
        case .refused(ConnectionsAPI.Close.name, let failure) where failure.isPermissionDenied:
            """
            A configuration file names this connection, and would bring it back. Take it out there, and have the \
            daemon \
            read its configuration again with "systemctl reload dialtoned".
            """
        case .refused(let method, let failure):
            failure.inWords ?? "The daemon refused \(method): \(failure)."
        case .interrupted(let method, let error):
            """
            The daemon did not answer \(method): \(error). See why with "journalctl -u dialtoned".
            """
        case .timedOut(let method, let limit):
            """
            The daemon did not answer \(method) within \(limit). See what it is doing with "systemctl status \
            dialtoned".
            """
        case .cancelled:
            "The request was cancelled."
        }
    }
}

extension DialtoneError {
    /// Whether a daemon that is started or restarted cures it.
    public var isPassing: Bool {
        switch self {
        case .notRunning, .busy, .timedOut: true
        case .interrupted(_, .hungUp), .interrupted(_, .failed): true
        case .interrupted(_, .violated), .interrupted(_, .refused), .interrupted(_, .closed): false
        case .accessDenied, .unreachable, .refused, .cancelled: false
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
    /// Whether it is the error that every service has for what is not allowed.
    fileprivate var isPermissionDenied: Bool { decoded(as: VarlinkService.PermissionDenied.self) != nil }

    /// The errors of the daemon's interfaces as sentences.
    fileprivate var inWords: String? {
        if let error: ConnectionsAPI.NoSuchConnection = decoded() {
            return "There is no connection \"\(error.name)\". \"dialtone list\" shows those that there are."
        }
        if let error: ConnectionsAPI.AmbiguousName = decoded() {
            let owners = error.owners.map(String.init).joined(separator: ", ")
            return "Several users have a connection \"\(error.name)\": \(owners). Say whose with --owner."
        }
        if let error: ConnectionsAPI.NameTaken = decoded() {
            return "This user has a connection \"\(error.name)\" already. Close it first, or choose another name."
        }
        if let error: ConnectionsAPI.NotOwner = decoded() {
            return "The connection \"\(error.name)\" belongs to another user. Only that user and root may do this."
        }
        if let error: ConnectionsAPI.InvalidRemote = decoded() {
            return "\"\(error.remote)\" cannot be dialled: \(error.reason)."
        }
        if let words = inWordsOfHandover { return words }
        if let error: ConnectionsAPI.QuotaExceeded = decoded() {
            return "This user has \(error.limit) connections or subscriptions, and may have no more."
        }
        if let error: ConnectionsAPI.ForeignNetwork = decoded() { return "The daemon refuses: \(error.reason)." }
        if let error: NetworkAPI.ForeignNetwork = decoded() { return "The daemon refuses: \(error.reason)." }
        if let error: ConnectionsAPI.Suspended = decoded() {
            return "The agent does nothing for this user for another \(error.seconds) s: \(error.reason)."
        }
        let shortage: ConnectionsAPI.OutOfResources? = decoded()
        if let reason = shortage?.reason ?? decoded(as: NetworkAPI.OutOfResources.self)?.reason {
            return """
                The agent begins nothing new: \(reason). Close connections, or raise the limit (MemoryMax= or \
                LimitNOFILE= of dialtoned.service).
                """
        }
        if let error: NetworkAPI.InvalidTarget = decoded() {
            return "The target makes no sense: \(error.reason)."
        }
        if let error: NetworkAPI.QuotaExceeded = decoded() {
            return "This user has \(error.limit) subscriptions, and may have no more."
        }
        return inWordsOfVarlink
    }

    /// The errors of handing flows over, as sentences.
    private var inWordsOfHandover: String? {
        if let error: ConnectionsAPI.StaleEpoch = decoded() {
            return """
                This flow of the connection "\(error.name)" is over, flow \(error.epoch) took its place. Close this \
                one, and take the connection again.
                """
        }
        if let error: ConnectionsAPI.NotReady = decoded() {
            return """
                The connection "\(error.name)" has no flow for that: it is \(error.state.rawValue). "dialtone watch \
                \(error.name)" shows when that changes.
                """
        }
        if let error: ConnectionsAPI.InvalidTimeout = decoded() {
            return "This timeout makes no sense for the connection \"\(error.name)\": \(error.reason)."
        }
        if let error: ConnectionsAPI.HeldByClient = decoded() {
            return error.process > 0
                ? "Process \(error.process) has the flow of \"\(error.name)\", until it parks the flow or ends."
                : """
                A process that cannot be seen from here has the flow of "\(error.name)", until it parks the flow. If \
                it is gone: "dialtone redial \(error.name)".
                """
        }
        if let error: ConnectionsAPI.NotTaken = decoded() {
            return "Nobody has taken the flow of the connection \"\(error.name)\", so it cannot be parked."
        }
        if let error: ConnectionsAPI.InvalidDescriptor = decoded() {
            return "What was to become the connection \"\(error.name)\" cannot be supervised: \(error.reason)."
        }
        if let error: ConnectionsAPI.SystemFailure = decoded() {
            return "The connection \"\(error.name)\": \(error.reason)."
        }
        return nil
    }

    /// The errors that every service has, as sentences.
    private var inWordsOfVarlink: String? {
        if let error: VarlinkService.InvalidParameter = decoded() {
            return "The daemon does not accept the parameter \"\(error.parameter)\", or not this value of it."
        }
        if let error: VarlinkService.MethodNotFound = decoded() {
            return "The daemon has no method \(error.method): it is older than this program."
        }
        if let error: VarlinkService.InterfaceNotFound = decoded() {
            return
                "What listens there has no interface \(error.interface): it is not a Dialtone daemon, or an older one."
        }
        if isPermissionDenied {
            return "The daemon does not allow this user to do that."
        }
        return nil
    }
}
