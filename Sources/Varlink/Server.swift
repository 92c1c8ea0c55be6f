// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc
public import Platform

/// Serves a ``VarlinkService`` on Unix sockets.
///
/// Each connection's calls are answered strictly in order. A call with `oneway` is never answered. A stream holds its
/// connection until it ends; the client ends it by hanging up, and hanging up also cancels a call that is answered
/// later. A client that closes only its sending side gets what it has asked for. A message that is not Varlink ends the
/// connection it came on. Idle connections cost no timer and no system call.
@AgentQueue
public final class VarlinkServer {
    /// What clients may use up.
    public struct Limits: Hashable, Sendable {
        /// The most connections, and no more than the process may have descriptors for. As in systemd's services.
        public var connections = 4096
        /// The most connections of one user, so that no user can take them all. As in systemd's services.
        public var connectionsPerUser = 1024
        /// The most bytes of a call. The longest honest one lists a few hundred names. A connection holds at most this
        /// and one chunk of 32 KiB of what its client sent, plus the one message it is being sent.
        public var messageBytes = 64 * 1024
        /// The kernel's buffer for what a client has not read yet (`SO_SNDBUF`). The kernel doubles the figure, and its
        /// default would let a thousand clients that do not read hold 200 MiB of unswappable memory.
        public var sendBufferBytes = 32 * 1024
        /// The most descriptors that ride on a call; a method asks for one. The kernel closes the rest without handing
        /// them out, and the connection ends.
        public var descriptorsPerCall = 4
        /// The most descriptors that came from one user and that no handler has taken, nor anybody closed yet. An
        /// honest call comes in one piece, so that hardly one ever waits; more of them end their connection.
        public var waitingDescriptorsPerUser = 64

        /// The defaults.
        public init() {}
    }

    /// Something that a client or the kernel did and that an operator may want to know of.
    public enum Incident: Hashable, Sendable {
        /// A client was turned away: there are ``Limits/connections`` already.
        case tooManyConnections(VarlinkPeer)
        /// A client was turned away: its user has ``Limits/connectionsPerUser`` already.
        case tooManyConnectionsOfUser(VarlinkPeer)
        /// Descriptors came with a call that takes none, and were closed. Told once for a connection.
        case unaskedDescriptors(VarlinkPeer)
        /// A connection was ended for what came on it.
        case violation(VarlinkPeer, VarlinkViolation)
        /// The kernel refused a connection that was open, or to be made. Accepting pauses for a second.
        case refused(SystemError)
    }

    /// Called with what an operator may want to know of.
    public var onIncident: (@AgentQueue (Incident) -> Void)?

    /// How many clients there are.
    public var connectionCount: Int { connections.count }
    /// How many descriptors came that nobody had asked for. They were closed.
    public private(set) var unaskedDescriptors = 0

    /// The most clients accepted in one turn of the queue.
    private static let acceptsPerTurn = 16
    /// How many clients the kernel lets wait to be accepted; it cuts this down to `net.core.somaxconn`.
    private static let backlog: CInt = 4096
    /// How long accepting pauses when the process or the machine is out of descriptors or memory: the clients wait in
    /// the kernel's queue, and trying again at once would only spin.
    private static let acceptPause = Duration.seconds(1)

    private let service: VarlinkService
    private let limits: Limits
    private var listeners: [Listener] = []
    private var connections: [ObjectIdentifier: ServerConnection] = [:]
    private var users: [UInt32: User] = [:]

    /// What the connections of one user take up together.
    private struct User {
        var connections = 0
        let descriptors: DescriptorAllowance
    }

    /// A server with no socket yet.
    public init(_ service: VarlinkService, limits: Limits = Limits()) {
        self.service = service
        self.limits = limits
    }

    /// Makes a socket at `path` and accepts clients on it. A socket file that nobody listens on any more is replaced.
    /// `mode` holds from the moment the path exists. Beside it, `path.lock` is made and stays.
    ///
    /// The directory must exist; a path may have 106 bytes.
    public func listen(at path: String, mode: UInt32) throws(VarlinkSocketError) {
        let file = try SocketFile(claiming: path)
        do throws(SystemError) {
            let socket = try file.listen(mode: mode, backlog: Self.backlog)
            try watch(Listener(socket, file: file))
        } catch {
            throw .system(error)
        }
    }

    /// Accepts clients on a listening socket, such as a service manager's. It is closed with the server; a name it has
    /// in the file system stays.
    ///
    /// - Throws: `EINVAL` if it is not a listening Unix stream socket.
    public func listen(on socket: consuming OwnedDescriptor) throws(SystemError) {
        let number = socket.number
        guard number.socketOption(SO_DOMAIN) == AF_UNIX, number.socketOption(SO_TYPE) == CInt(SOCK_STREAM.rawValue),
            number.socketOption(SO_ACCEPTCONN) == 1
        else { throw SystemError("serving on descriptor \(number), which is no listening Unix socket", code: EINVAL) }
        try retryingInterrupts("making descriptor \(number) non-blocking") {
            fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK)
        }
        try watch(Listener(socket, file: nil))
    }

    /// Serves one connected socket. It counts like an accepted one.
    public func serve(_ socket: consuming OwnedDescriptor) throws(SystemError) {
        let peer = try VarlinkPeer(of: socket)
        if connections.count >= limits.connections {
            onIncident?(.tooManyConnections(peer))
            return
        }
        var user = users[peer.uid] ?? User(descriptors: DescriptorAllowance(limit: limits.waitingDescriptorsPerUser))
        if user.connections >= limits.connectionsPerUser {
            onIncident?(.tooManyConnectionsOfUser(peer))
            return
        }
        var size = CInt(limits.sendBufferBytes)
        // Refused for no socket that has a peer; and the default size would work as well.
        _ = setsockopt(socket.number, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout.size(ofValue: size)))
        let connection = try ServerConnection(
            socket, peer: peer, service: service, messageLimit: limits.messageBytes,
            inbox: DescriptorInbox(limit: limits.descriptorsPerCall, allowance: user.descriptors)
        ) { [weak self] in self?.closed($0, $1) }
        connection.onRefusedDescriptors = { [weak self] in self?.refused(descriptors: $0, of: peer, isFirst: $1) }
        connections[ObjectIdentifier(connection)] = connection
        user.connections += 1
        users[peer.uid] = user
    }

    isolated deinit {
        for listener in listeners { listener.close() }
        for connection in connections.values { connection.discard() }
    }

    /// Stops listening and answers no call any more; streams go on until ``close()``. Whoever waits for an answer is
    /// hung up on, and can ask whoever serves next.
    public func stopAnswering() {
        for listener in listeners { listener.close() }
        listeners = []
        for connection in Array(connections.values) { connection.stopAnswering() }
    }

    /// Stops listening, removes the paths it made and ends all connections.
    public func close() {
        for listener in listeners { listener.close() }
        listeners = []
        for connection in Array(connections.values) { connection.close(nil) }
    }

    private func watch(_ listener: Listener) throws(SystemError) {
        try listener.watch { [weak self, unowned listener] in self?.accept(from: listener) }
        listeners.append(listener)
    }

    private func accept(from listener: Listener) {
        for _ in 0..<Self.acceptsPerTurn {
            do throws(SystemError) {
                guard let socket = try listener.accept() else { return }
                try serve(socket)
            } catch {
                onIncident?(.refused(error))
                return listener.pause(for: Self.acceptPause)
            }
        }
    }

    private func refused(descriptors count: Int, of peer: VarlinkPeer, isFirst: Bool) {
        unaskedDescriptors += count
        if isFirst { onIncident?(.unaskedDescriptors(peer)) }
    }

    private func closed(_ connection: ServerConnection, _ reason: Channel.Ending?) {
        connections[ObjectIdentifier(connection)] = nil
        if var user = users[connection.peer.uid] {
            user.connections -= 1
            users[connection.peer.uid] = user.connections > 0 ? user : nil
        }
        switch reason {
        case .hungUp, nil: break
        case .failed(let error): onIncident?(.refused(error))
        case .violated(let violation): onIncident?(.violation(connection.peer, violation))
        }
    }
}
