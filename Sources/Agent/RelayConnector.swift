// SPDX-License-Identifier: Apache-2.0

internal import ConnectionIO
internal import Glibc
internal import Logging
internal import Platform
internal import Processes
internal import RelayMessages
internal import Varlink

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
            // It gets keys: whoever listens there must be who may have them.
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

    private static let kind = CInt(
        SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)

    // MARK: - The child

    private static func pair() throws(SystemError) -> (CInt, CInt) {
        var ends: [CInt] = [0, 0]
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw .last("making a channel to dialtone-tls") }
        return (ends[0], ends[1])
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
        let process = try ProcessHandle(try Self.spawn(path, passed.number))
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
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let own = String(decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let directory = own.lastIndex(of: "/").map { String(own[..<$0]) } ?? "."
        let places = ["\(directory)/\(program)", "\(directory)/../libexec/\(program)"]
        return places.first { access($0, X_OK) == 0 } ?? places[0]
    }

    private static func spawn(_ path: String, _ control: CInt) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, control, RelayStart.listener)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var arguments = [strdup(program), strdup(RelayStart.serving), nil]
        // It needs nothing of the environment but OpenSSL's configuration, which is a file.
        var environment: [UnsafeMutablePointer<CChar>?] = [nil]
        defer { for argument in arguments { free(argument) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, path, &actions, &attributes, &arguments, &environment)
        if code != 0 { throw SystemError("starting \(path)", code: code) }
        return child
    }
}
