// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnectionIO
internal import DialtonePlatform
internal import DialtoneProcesses
internal import DialtoneRelayMessages
internal import DialtoneVarlink
internal import Glibc
internal import Logging

/// Reaches `dialtone-tls`: the service of its own, where there is one beside the agent's socket, whose flows outlive
/// this process; else a child of this process.
@AgentQueue
final class RelayConnector {
    /// Where the service's socket is, in the directory of the agent's own.
    static let socketName = "tls.sock"
    private static let program = "dialtone-tls"
    /// A child that ends again and again is started no more often than this.
    private static let pause = Duration.seconds(1)

    private let path: String?
    private let logger: Logger
    /// The child, and over what it is sent channels.
    private var child: ProcessHandle?
    private var control: MessageSocket?
    private var lastStart: Duration?

    /// - Parameter path: the socket of the service; `nil` where there can be none.
    init(service path: String?, _ logger: Logger) {
        self.path = path
        self.logger = logger
    }

    /// A new connection to it.
    func connect() throws(SystemError) -> RelayAccess.Channel {
        if let path, let channel = try Self.connect(to: path) {
            return RelayAccess.Channel(channel, outlivesAgent: true)
        }
        if child == nil { try start() }
        let (ours, theirs) = try Self.pair()
        // Closed as what somebody may have put descriptors into: it parses what servers send.
        let channel = OwnedDescriptor(ours, sharedWith: OwnedDescriptor.somebody)
        try hand(OwnedDescriptor(theirs))
        return RelayAccess.Channel(channel, outlivesAgent: false)
    }

    // MARK: - The service

    /// - Returns: `nil` where nobody listens.
    private static func connect(to path: String) throws(SystemError) -> OwnedDescriptor? {
        do throws(SystemError) {
            let socket = try UnixSocket.connect(to: path, keepingMessagesApart: true)
            // It is sent keys, so it must run as a user who may have them.
            guard let user = UnixSocket.peer(of: socket.number), user == 0 || user == geteuid() else {
                throw SystemError(
                    "reaching dialtone-tls at \(path), which is neither root's nor this user's", code: EACCES)
            }
            return socket.shared(with: OwnedDescriptor.somebody)
        } catch {
            if error.code == ENOENT || error.code == ECONNREFUSED { return nil }
            throw error
        }
    }

    // MARK: - The child

    private static func pair() throws(SystemError) -> (CInt, CInt) {
        try OwnedDescriptor.socketPair(keepingMessagesApart: true, isBlocking: false)
    }

    private func hand(_ channel: consuming OwnedDescriptor) throws(SystemError) {
        do throws(SystemError) {
            switch control {
            case .some(let control): try control.send([0], [channel.number])
            case .none: throw SystemError("reaching dialtone-tls", code: EAGAIN)
            }
        } catch {
            // It has just ended: the next one is asked.
            throw error.code == EPIPE ? SystemError("reaching dialtone-tls", code: EAGAIN) : error
        }
    }

    private func start() throws(SystemError) {
        let now = BootClock.now()
        if let lastStart, now - lastStart < Self.pause { throw SystemError("starting dialtone-tls", code: EAGAIN) }
        lastStart = now
        let path = Self.programPath
        let (ours, theirs) = try Self.pair()
        control = MessageSocket(OwnedDescriptor(ours))
        let passed = OwnedDescriptor(theirs)
        // It needs nothing of the environment but OpenSSL's configuration, which is a file.
        let number = try Spawn.start(
            "starting \(path)", path, [Self.program, RelayStart.serving], environment: [],
            descriptors: [(STDIN_FILENO, .file("/dev/null")), (RelayStart.listener, .descriptor(passed.number))])
        let process = try ProcessHandle(number)
        passed.close()
        try process.onEnd { [self] in
            logger.warning("dialtone-tls has ended", metadata: ["process": "\(process.number)"])
            waitpid(process.number, nil, 0)
            child = nil
            control = nil
        }
        child = process
        logger.notice(
            "flows with TLS end with this service: dialtone-tls is not a service of its own here",
            metadata: ["program": "\(path)"])
    }

    /// Beside this program, or where programs are that nobody calls.
    private static var programPath: String {
        let directory = OwnProgram.directory
        let places = ["\(directory)/\(program)", "\(directory)/../libexec/\(program)"]
        return places.first { access($0, X_OK) == 0 } ?? places[0]
    }
}
