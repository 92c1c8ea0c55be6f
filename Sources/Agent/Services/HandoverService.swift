// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneProcesses
internal import DialtoneVarlink
internal import Glibc

/// Answers the methods of `org.dialtone.Connections` by which flows change hands.
@AgentQueue
enum HandoverService {
    /// The calls of `Take` that wait for a connection of the registry.
    static func waitingTakes(of registry: ConnectionRegistry) -> WaitingTakes {
        WaitingTakes(of: registry) { settle($0, from: registry) }
    }

    /// Adds the methods to `service`, which has the interface already.
    static func register(
        in service: VarlinkService, _ registry: ConnectionRegistry, _ boundary: NetworkBoundary,
        _ waiting: WaitingTakes
    ) {
        service.handleLater(ConnectionsAPI.Take.self) { parameters, exchange throws(VarlinkFailure) in
            try boundary.check(exchange.peer)
            let which = try ConnectionReference(parameters.name, owner: parameters.owner)
            try answer(about: which.name) { () throws(RegistryError) in
                guard let awaited = parameters.until else { return try take(which, from: registry, exchange) }
                let key = try registry.key(of: which, for: exchange.peer.uid)
                waiting.add(.init(key, until: awaited, exchange))
            }
        }
        service.handle(ConnectionsAPI.Park.self) { parameters, peer throws(VarlinkFailure) in
            try boundary.check(peer)
            guard let epoch = UInt64(exactly: parameters.epoch) else {
                throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "epoch"))
            }
            let opening = try parameters.opening.map { steps throws(VarlinkFailure) in try LeftOpening(steps) }
            let answers = try parameters.answers.map { messages throws(VarlinkFailure) in try LeftAnswers(messages) }
            let which = try ConnectionReference(parameters.name, owner: parameters.owner)
            try answer(about: parameters.name) { () throws(RegistryError) in
                try registry.park(which, epoch, leaving: opening, answering: answers, for: peer.uid)
            }
            return VarlinkEmpty()
        }
        service.handle(ConnectionsAPI.Acknowledge.self) { parameters, peer throws(VarlinkFailure) in
            guard let wake = UInt64(exactly: parameters.wake) else {
                throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "wake"))
            }
            let which = try ConnectionReference(parameters.name, owner: parameters.owner)
            try answer(about: parameters.name) { () throws(RegistryError) in
                try registry.acknowledge(which, wake: wake, by: peer.pid, for: peer.uid)
            }
            return VarlinkEmpty()
        }
        service.handleLater(ConnectionsAPI.Adopt.self) { parameters, exchange throws(VarlinkFailure) in
            try boundary.check(exchange.peer)
            exchange.reply(.init(name: try adopt(parameters, into: registry, exchange)))
        }
    }

    private static func take(
        _ which: ConnectionReference, from registry: ConnectionRegistry,
        _ exchange: VarlinkExchange<ConnectionsAPI.Take>
    ) throws(RegistryError) {
        let process = try caller(of: exchange, isProven: registry.needsProof(of: which, for: exchange.peer.uid))
        let flow = try registry.take(which, by: process, for: exchange.peer.uid)
        guard let connection = try registry.wire(of: which, for: exchange.peer.uid) else { throw .noSuchConnection }
        let (epoch, isOver) = (Int(clamping: flow.epoch), flow.isOver)
        let descriptors = VarlinkDescriptors()
        let place = descriptors.append(flow.release())
        exchange.reply(
            .init(connection: connection, fileDescriptor: place, epoch: epoch, isOver: isOver), descriptors)
    }

    /// Answers a call that may wait.
    ///
    /// - Returns: whether it has its answer: the flow, or why it will never have one.
    private static func settle(_ call: WaitingTakes.Call, from registry: ConnectionRegistry) -> Bool {
        let (exchange, which) = (call.exchange, ConnectionReference(call.key.name, of: call.key.owner))
        do throws(RegistryError) {
            if call.awaited == .data, try !registry.hasInput(which, for: exchange.peer.uid) { return false }
            try take(which, from: registry, exchange)
        } catch {
            switch error {
            case .notReady(let state) where state != .closed: return false
            case .heldByClient: return false
            default: exchange.fail(VarlinkFailure(error, about: which.name))
            }
        }
        return true
    }

    /// The process that a flow is given to; `nil` for one that cannot be watched: it gives the flow back by parking
    /// alone.
    ///
    /// - Throws: where it has ended. Its end, which gives a flow back, would not be told any more.
    ///
    /// - Parameter isProven: whether the launcher is to believe that it came here.
    private static func caller(
        of exchange: VarlinkExchange<ConnectionsAPI.Take>, isProven: Bool
    ) throws(RegistryError) -> ProcessHandle? {
        let number = exchange.peer.pid
        var refusal = SystemError("giving the flow to process \(number), which connected and has ended", code: ESRCH)
        do throws(SystemError) {
            let process: ProcessHandle
            if isProven {
                process = try ProcessHandle(connectedBy: exchange.duplicateConnection())
            } else {
                process = try ProcessHandle(exchange.openPeerProcess())
            }
            if process.isAlive { return process }
        } catch {
            switch error.code {
            // Of another PID namespace it has no number here to be opened by, as before Linux 6.5.
            case EINVAL where number == 0: return nil
            // Before Linux 6.16 the kernel has no descriptor for a process that was reaped.
            case ESRCH, EINVAL: break
            case EMFILE, ENFILE: refusal = error
            default: return nil
            }
        }
        throw .system(refusal)
    }

    private static func adopt(
        _ parameters: ConnectionsAPI.Adopt.Parameters, into registry: ConnectionRegistry,
        _ exchange: VarlinkExchange<ConnectionsAPI.Adopt>
    ) throws(VarlinkFailure) -> String {
        let user = exchange.peer.uid
        let number = try exchange.descriptor(parameters.fileDescriptor, parameter: "fileDescriptor")
        // What is refused is to be closed as well, and that the user may make wait.
        do throws(SystemError) {
            try UserThreads.checkRoom(for: exchange.peer.account)
        } catch {
            throw VarlinkFailure(.system(error), about: parameters.name)
        }
        let socket: AdoptedSocket
        do throws(AdoptedSocket.Unfit) {
            socket = try AdoptedSocket.look(at: number, of: exchange.peer.account)
        } catch {
            throw VarlinkFailure(ConnectionsAPI.InvalidDescriptor(name: parameters.name, reason: error.reason))
        }
        let given = ConnectionsAPI.Open.Parameters(
            remote: parameters.remote ?? "tcp://\(socket.remote)", name: parameters.name, settings: parameters.settings)
        let policy = try ConnectionPolicy(given, user: user, redials: parameters.remote != nil)
        let adoption = Adoption(local: socket.local, remote: socket.remote, handled: policy.answers.handled)
        let descriptor = try exchange.takeDescriptor(parameters.fileDescriptor, parameter: "fileDescriptor")
        // Whose end is nothing to the flow: it is the agent's from now on.
        let process = try? ProcessHandle(exchange.openPeerProcess())
        do throws(RegistryError) {
            return try registry.adopt(
                parameters.name, descriptor, adoption, policy, by: process, owner: user, given: given.json)
        } catch {
            throw VarlinkFailure(error, about: parameters.name)
        }
    }
}
