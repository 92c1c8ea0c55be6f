// SPDX-License-Identifier: Apache-2.0

internal import Activation
internal import Dialer
internal import DialtoneAPI
internal import Platform
internal import Supervisor
internal import Varlink

/// Answers the methods of `org.dialtone.Connections` by which flows change hands.
@AgentQueue
enum HandoverService {
    /// Adds the methods to `service`, which has the interface already.
    static func register(in service: VarlinkService, _ registry: ConnectionRegistry) {
        service.handleLater(ConnectionsAPI.Take.self) { parameters, exchange throws(VarlinkFailure) in
            try take(parameters.name, from: registry, exchange)
        }
        service.handle(ConnectionsAPI.Park.self) { parameters, peer throws(VarlinkFailure) in
            guard let epoch = UInt64(exactly: parameters.epoch) else {
                throw VarlinkFailure(VarlinkService.InvalidParameter(parameter: "epoch"))
            }
            let opening = try parameters.opening.map { steps throws(VarlinkFailure) in try LeftOpening(steps) }
            do throws(RegistryError) {
                try registry.park(parameters.name, epoch, leaving: opening, for: peer.uid)
            } catch {
                throw VarlinkFailure(error, about: parameters.name)
            }
            return VarlinkEmpty()
        }
        service.handleLater(ConnectionsAPI.Adopt.self) { parameters, exchange throws(VarlinkFailure) in
            exchange.reply(.init(name: try adopt(parameters, into: registry, exchange)))
        }
    }

    private static func take(
        _ name: String, from registry: ConnectionRegistry, _ exchange: VarlinkExchange<ConnectionsAPI.Take>
    ) throws(VarlinkFailure) {
        // One whose process cannot be watched, as one of another PID namespace, gives the flow back by parking alone.
        let process = try? ProcessHandle(exchange.openPeerProcess())
        do throws(RegistryError) {
            let flow = try registry.take(name, by: process, for: exchange.peer.uid)
            guard let connection = try registry.wire(of: name, for: exchange.peer.uid) else {
                throw .noSuchConnection
            }
            let (epoch, isOver) = (Int(clamping: flow.epoch), flow.isOver)
            let descriptors = VarlinkDescriptors()
            let place = descriptors.append(flow.release())
            exchange.reply(
                .init(connection: connection, fileDescriptor: place, epoch: epoch, isOver: isOver), descriptors)
        } catch {
            throw VarlinkFailure(error, about: name)
        }
    }

    private static func adopt(
        _ parameters: ConnectionsAPI.Adopt.Parameters, into registry: ConnectionRegistry,
        _ exchange: VarlinkExchange<ConnectionsAPI.Adopt>
    ) throws(VarlinkFailure) -> String {
        let descriptor = try exchange.takeDescriptor(parameters.fileDescriptor, parameter: "fileDescriptor")
        let user = exchange.peer.uid
        let socket: AdoptedSocket
        do throws(AdoptedSocket.Unfit) {
            socket = try AdoptedSocket(descriptor)
        } catch {
            throw VarlinkFailure(ConnectionsAPI.InvalidDescriptor(name: parameters.name, reason: error.reason))
        }
        let remote = parameters.remote ?? "tcp://\(socket.remote)"
        let given = parameters.opening(remote)
        var policy = try ConnectionPolicy(given, user: user)
        policy.redials = parameters.remote != nil
        let adoption = Adoption(local: socket.local, remote: socket.remote)
        do throws(RegistryError) {
            return try registry.adopt(parameters.name, descriptor, adoption, policy, owner: user, given: given.encoded)
        } catch {
            throw VarlinkFailure(error, about: parameters.name)
        }
    }
}
