// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
package import DialtonePlatform
internal import Glibc

/// Serves a ``VarlinkService`` on Unix sockets.
///
/// Each connection's calls are answered strictly in order. A call with `oneway` is never answered. A stream holds its
/// connection until it ends; the client ends it by hanging up, and hanging up also cancels a call that is answered
/// later. A client that closes only its sending side gets what it has asked for. A message that is not Varlink ends the
/// connection it came on. Idle connections cost no timer and no system call.
@AgentQueue
package final class VarlinkServer {
    /// What clients may use up.
    package struct Limits: Hashable, Sendable {
        /// The most connections of all users together, those without a limit aside. As in systemd's services.
        package var connections = 4096
        /// The most connections of one user. As in systemd's services. When all are taken, a user who has fewer than
        /// another gets one of those of the user who has most (``SharePool``).
        package var connectionsPerUser = 1024
        /// How many connections are kept for the users in ``privileged``, beside the others': those who mend things
        /// must get in when all else is taken.
        package var privilegedConnections = 1024
        /// The most connects of one user in a second: all of a user's clients at once, twice. What is beyond is hung up
        /// on before anything is made for it, so that one who connects in a loop fills the kernel's queue, in which
        /// everybody waits, more slowly than it is emptied.
        package var connectsPerSecond = 2048
        /// Who has no share but ``privilegedConnections``: root, who could take everything anyway, unless told
        /// otherwise.
        package var privileged: Set<UInt32> = [0]
        /// The most bytes of a call. The longest honest one lists a few hundred names. A connection holds at most this
        /// and one chunk of 32 KiB of what its client sent, plus the one message it is being sent.
        package var messageBytes = 64 * 1024
        /// The most bytes that are held for the connections of one user, by the same rule as for connections: 32
        /// answers to a user who has a thousand connections and reads none. Beyond it the connection that holds most is
        /// ended.
        package var heldBytesPerUser = 32 * 1024 * 1024
        /// The most bytes that are held for all users, those in ``privileged`` aside.
        package var heldBytes = 128 * 1024 * 1024
        /// The kernel's buffer for what a client has not read yet (`SO_SNDBUF`). The kernel doubles the figure, and its
        /// default would let a thousand clients that do not read hold 200 MiB of unswappable memory.
        package var sendBufferBytes = 32 * 1024
        /// The most descriptors that ride on a call; a method asks for one. More of them end the connection.
        package var descriptorsPerCall = 4
        /// The most descriptors that came from one user and that no handler has taken, nor anybody closed yet. An
        /// honest call comes in one piece, so that hardly one ever waits; more of them end their connection.
        package var waitingDescriptorsPerUser = 64

        /// The defaults.
        package init() {}

        /// What a client may come to, in bytes, as measured with a thousand that read nothing: its place, what was read
        /// of a call, a small answer, and what the kernel holds of answers: twice ``sendBufferBytes``, and one message
        /// more.
        package var clientBytes: Int { 20 * 1024 + 3 * sendBufferBytes }

        /// Lowers what all clients may take for a process that may have no more than so many bytes of memory, the
        /// kernel's for its sockets included: half of it for clients, whose buffers become smaller before they become
        /// fewer, and a sixteenth for what is held of calls and answers.
        package mutating func fit(into memory: UInt64) {
            let memory = Int(clamping: memory)
            let room = memory / 2 / max(connections, 1)
            // Twice the least that the kernel takes (socket(7)).
            sendBufferBytes = max(min(sendBufferBytes, (room - 20 * 1024) / 3), 4096)
            connections = max(min(connections, memory / 2 / clientBytes), 16)
            connectionsPerUser = min(connectionsPerUser, connections)
            heldBytes = max(min(heldBytes, memory / 16), messageBytes)
            heldBytesPerUser = min(heldBytesPerUser, heldBytes)
        }
    }

    /// Something that a client or the kernel did and that an operator may want to know of.
    package enum Incident: Hashable, Sendable {
        /// A client was turned away: its user has ``Limits/connectionsPerUser`` already, or all are taken and nobody
        /// has more; or it came as one of too many in a second; or one was ended for the client of a user who has
        /// fewer.
        case tooManyConnectionsOfUser(VarlinkPeer)
        /// Descriptors came that no method asked for, and were closed. Told once for a connection.
        case unaskedDescriptors(VarlinkPeer)
        /// A connection was ended for what came on it.
        case violation(VarlinkPeer, VarlinkViolation)
        /// The kernel refused a connection that was open, or to be made. Accepting pauses for a second.
        case refused(SystemError)
    }

    /// Says in whose share a user takes part, where that is not a share of its own.
    package var account: (@AgentQueue (_ user: UInt32) -> UInt32)?
    /// Asked before a client is served. What it throws is the answer to the client's first call, and the end.
    package var admission: (@AgentQueue (VarlinkPeer) throws(VarlinkFailure) -> Void)?
    /// Called with what an operator may want to know of, and with how many incidents of this kind and user were left
    /// out since the last one: one a minute is told (``IncidentPacer``).
    package var onIncident: (@AgentQueue (_ incident: Incident, _ leftOut: Int) -> Void)?

    /// How many clients there are.
    package var connectionCount: Int { connections.count }
    /// How many descriptors came that nobody had asked for. They were closed.
    package private(set) var unaskedDescriptors = 0

    /// How long clients are accepted before others get their turn. To accept a client, or to turn it away, takes some
    /// microseconds: a user who connects in a loop fills the kernel's queue more slowly than this empties it.
    private static let acceptTime = Duration.milliseconds(1)
    /// How many clients the kernel lets wait to be accepted; it cuts this down to `net.core.somaxconn`.
    private static let backlog: CInt = 4096
    /// How long accepting pauses when the process or the machine is out of descriptors or memory: the clients wait in
    /// the kernel's queue, and trying again at once would only spin.
    private static let acceptPause = Duration.seconds(1)

    private let service: VarlinkService
    private let limits: Limits
    private var listeners: [Listener] = []
    /// So many clients that were refused may wait for their first call.
    private static let mostRefused = 16

    private var connections: [UInt64: ServerConnection] = [:]
    /// The keys of the last of those that were refused.
    private var refused: [UInt64] = []
    /// The key in `connections` of the one that was accepted last.
    private var newest: UInt64 = 0
    private var pace: ConnectPace
    private var slots: SharePool
    private var privilegedSlots = 0
    private var bytes: SharePool
    private var descriptors: [UInt32: Descriptors] = [:]
    private var incidents = IncidentPacer()

    /// What came on the connections of one user, as long as there is one.
    private struct Descriptors {
        var connections = 0
        let allowance: DescriptorAllowance
    }

    /// A server with no socket yet.
    package init(_ service: VarlinkService, limits: Limits = Limits()) {
        self.service = service
        self.limits = limits
        pace = ConnectPace(limit: limits.connectsPerSecond)
        slots = SharePool(total: limits.connections, perUser: limits.connectionsPerUser)
        bytes = SharePool(total: limits.heldBytes, perUser: limits.heldBytesPerUser)
    }

    /// Makes a socket at `path` and accepts clients on it. A socket file that nobody listens on any more is replaced.
    /// `mode`, and the group where one is given, hold from the moment the path exists. Beside it, `path.lock` is made
    /// and stays.
    ///
    /// The directory must exist; a path may have 106 bytes.
    package func listen(at path: String, mode: UInt32, group: UInt32? = nil) throws(VarlinkSocketError) {
        let file = try SocketFile(claiming: path)
        do throws(SystemError) {
            let socket = try file.listen(mode: mode, group: group, backlog: Self.backlog)
            try watch(Listener(socket, file: file))
        } catch {
            throw .system(error)
        }
    }

    /// Accepts clients on a listening socket, such as a service manager's. It is closed with the server; a name it has
    /// in the file system stays.
    ///
    /// - Throws: `EINVAL` if it is not a listening Unix stream socket.
    package func listen(on socket: consuming OwnedDescriptor) throws(SystemError) {
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
    package func serve(_ socket: consuming OwnedDescriptor) throws(SystemError) {
        let peer = try VarlinkPeer(of: socket)
        try serve(socket, for: peer)
    }

    /// Likewise, with the client's user as given.
    func serve(_ socket: consuming OwnedDescriptor, for peer: VarlinkPeer) throws(SystemError) {
        var peer = peer
        if let account { peer.account = account(peer.uid) }
        let user = peer.account
        let socket = socket.shared(with: user)
        let isInPace = limits.privileged.contains(user) || pace.admits(user, now: BootClock.now())
        guard isInPace, makeSlot(for: user) else {
            report(.tooManyConnectionsOfUser(peer), of: user)
            return socket.endConnection()
        }
        var descriptors =
            descriptors[user]
            ?? Descriptors(allowance: DescriptorAllowance(limit: limits.waitingDescriptorsPerUser, of: user))
        socket.readUrgentInTurn()
        newest += 1
        let key = newest
        // Refused for no socket that has a peer; and the default size would work as well.
        socket.number.setSocketOption(SO_SNDBUF, to: CInt(limits.sendBufferBytes))
        let connection = try ServerConnection(
            socket, peer: peer, service: service, messageLimit: limits.messageBytes,
            inbox: DescriptorInbox(limit: limits.descriptorsPerCall, allowance: descriptors.allowance),
            notices: .init(
                refusedDescriptors: { [weak self, peer] in self?.refused(descriptors: $0, of: peer, isFirst: $1) },
                heldBytes: { [weak self] in self?.held($0, for: user) },
                closed: { [weak self] in self?.closed(key, $0, $1) }))
        do throws(VarlinkFailure) { try admit(peer) } catch { connection.refusal = error }
        connections[key] = connection
        if connection.refusal != nil { endRefused(before: key) }
        descriptors.connections += 1
        self.descriptors[user] = descriptors
        takeSlot(1, for: user)
    }

    /// How many bytes are held for a user who has a share; tests look at it.
    func heldBytes(for user: UInt32) -> Int { bytes.held(by: user) }

    /// Whether there is a slot for one more connection of `user`, if need be by ending the newest of the user who has
    /// most.
    private func makeSlot(for user: UInt32) -> Bool {
        if limits.privileged.contains(user) { return privilegedSlots < limits.privilegedConnections }
        if UserThreads.isFull(for: user) { return false }
        guard let greediest = slots.whoGivesWay(to: user) else { return true }
        return greediest != user && endNewest(of: greediest)
    }

    /// Asks ``admission``; where it refuses, the newest client of the user who has most gives way to a user who has
    /// fewer. As many as it takes give way to somebody privileged, four at a time: most of what one has may be in its
    /// own socket, and stays.
    private func admit(_ peer: VarlinkPeer) throws(VarlinkFailure) {
        let atOnce = limits.privileged.contains(peer.account) ? 4 : 1
        for attempt in 1... {
            do throws(VarlinkFailure) {
                return try admission?(peer) ?? ()
            } catch {
                if attempt > 1, atOnce == 1 { throw error }
                let ended = (0..<atOnce).prefix { _ in
                    slots.whoHasMore(than: peer.account).map { endNewest(of: $0) } ?? false
                }
                if ended.isEmpty { throw error }
            }
        }
    }

    /// Refused clients wait for their first call, to be told why; the oldest of too many is hung up on.
    private func endRefused(before key: UInt64) {
        refused.append(key)
        if refused.count > Self.mostRefused { connections[refused.removeFirst()]?.close(nil) }
    }

    private func endNewest(of user: UInt32) -> Bool {
        let theirs = connections.filter { $0.value.peer.account == user && $0.value.refusal == nil }
        guard let last = theirs.max(by: { $0.key < $1.key })?.value else { return false }
        report(.tooManyConnectionsOfUser(last.peer), of: user)
        last.close(nil)
        return true
    }

    private func takeSlot(_ change: Int, for user: UInt32) {
        if limits.privileged.contains(user) { privilegedSlots += change } else { slots.add(change, for: user) }
    }

    private func release(_ user: UInt32) {
        takeSlot(-1, for: user)
        guard var descriptors = descriptors[user] else { return }
        descriptors.connections -= 1
        self.descriptors[user] = descriptors.connections > 0 ? descriptors : nil
    }

    /// Counts what is held for `user`, and ends the connection that holds most where it is too much.
    private func held(_ change: Int, for user: UInt32) {
        guard !limits.privileged.contains(user) else { return }
        bytes.add(change, for: user)
        guard change > 0, let greediest = bytes.whoGivesWay(to: user) else { return }
        let theirs = connections.values.filter { $0.peer.account == greediest }
        guard let greediest = theirs.max(by: { $0.heldBytes < $1.heldBytes }) else { return }
        greediest.closeLater(.violated(.tooMuchHeld(bytes: greediest.heldBytes)))
    }

    isolated deinit {
        for listener in listeners { listener.close() }
        for connection in connections.values { connection.discard() }
    }

    /// Stops listening and answers no call any more; streams go on until ``close()``. Whoever waits for an answer is
    /// hung up on, and can ask whoever serves next.
    package func stopAnswering() {
        for listener in listeners { listener.close() }
        listeners = []
        for connection in Array(connections.values) { connection.stopAnswering() }
    }

    /// Stops listening, removes the paths it made and ends all connections.
    package func close() {
        for listener in listeners { listener.close() }
        listeners = []
        for connection in Array(connections.values) { connection.close(nil) }
    }

    private func watch(_ listener: Listener) throws(SystemError) {
        try listener.watch { [weak self, unowned listener] in self?.accept(from: listener) }
        listeners.append(listener)
    }

    private func accept(from listener: Listener) {
        let end = BootClock.now() + Self.acceptTime
        repeat {
            do throws(SystemError) {
                guard let socket = try listener.accept() else { return }
                try serve(socket)
            } catch {
                report(.refused(error), of: nil)
                return listener.pause(for: Self.acceptPause)
            }
        } while BootClock.now() < end
    }

    private func refused(descriptors count: Int, of peer: VarlinkPeer, isFirst: Bool) {
        unaskedDescriptors += count
        if isFirst { report(.unaskedDescriptors(peer), of: peer.account) }
    }

    private func closed(_ key: UInt64, _ connection: ServerConnection, _ reason: Channel.Ending?) {
        connections[key] = nil
        release(connection.peer.account)
        switch reason {
        case .hungUp, nil: break
        case .failed(let error): report(.refused(error), of: nil)
        case .violated(let violation): report(.violation(connection.peer, violation), of: connection.peer.account)
        }
    }

    private func report(_ incident: Incident, of user: UInt32?) {
        guard let leftOut = incidents.admit(kind: incident.kind, user: user, now: BootClock.now()) else { return }
        onIncident?(incident, leftOut)
    }
}

extension VarlinkServer.Incident {
    /// Incidents of one kind are told of as one.
    fileprivate var kind: Int {
        switch self {
        case .tooManyConnectionsOfUser: 0
        case .unaskedDescriptors: 1
        case .violation: 2
        case .refused: 3
        }
    }
}
