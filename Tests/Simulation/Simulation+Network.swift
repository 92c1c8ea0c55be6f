// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneTestSupport

@testable import DialtoneConnection

// What hosts do with what is sent to them.

extension Simulation {
    /// Whether what a flow's server says comes through.
    func hears(_ epoch: UInt64) -> Bool {
        guard let socket = checker.known.sockets[epoch], let local = socket.local else { return false }
        return world.carries(socket.request, from: local.address)
    }

    /// The server hears a step of an opening, and answers.
    mutating func login(_ epoch: UInt64, _ step: Int, of count: Int, _ begun: Duration) throws {
        guard hears(epoch), let host = host(of: epoch), world.hosts[host] != .silent, world.hosts[host] != .hangs else {
            return
        }
        if world.hasOneSession, step == 1 {
            let others = checker.known.sockets.filter { $0.key != epoch && $0.value.connectedAt != nil }.keys
            for other in others.sorted() { later(.milliseconds(random.below(50)), .input(.remoteClosed(epoch: other))) }
        }
        switch world.login {
        case .silent: break
        case .hangsUp: try tell(.remoteClosed(epoch: epoch))
        case .refuses:
            let cause: OpeningFailure.Cause = random.chance(80) ? .mismatch : .tooLong
            let busy = LoginRefusal("busy", mayPass: true, pause: random.chance(30) ? .seconds(120) : nil)
            let refusal = random.chance(50) ? busy : random.chance(20) ? LoginRefusal("no", pause: .seconds(9)) : nil
            try tell(.openingFailed(epoch: epoch, .init(step: step, cause: cause, refusal: refusal)))
        case .accepts:
            try tell(.openingAnswered(epoch: epoch, awaiting: min(step + 1, count), begun: begun))
            if step == count { return try tell(.sessionOpened(epoch: epoch)) }
            later(.milliseconds(random.below(9000)), .login(epoch: epoch, step: step + 1, of: count, begun: now))
        }
    }

    func host(of epoch: UInt64) -> Int? {
        checker.known.sockets[epoch].flatMap { World.hosts.firstIndex(of: $0.request.remote.address) }
    }

    mutating func connect(_ request: FlowRequest) {
        let epoch = request.epoch
        let failed = { (failure: FlowFailure) in ConnectionInput.dialFailed(epoch: epoch, failure) }
        let own = World.interfaces.firstIndex { $0.index == request.interfaceIndex }
        guard let uplink = request.isBoundToInterface ? own : world.usedUplink else {
            return backlog.append(.input(failed(.networkUnreachable)))
        }
        let source = request.source ?? World.source(of: uplink, request.remote.address.family)
        guard world.isPresent(source) else { return backlog.append(.input(failed(.addressNotAvailable))) }
        guard let host = World.hosts.firstIndex(of: request.remote.address) else { return }
        var latency = Duration.milliseconds(random.below(600))
        if World.uplink(of: source).map(world.deadUplinks.contains) ?? false {
            // A router may say so.
            return random.chance(30) ? later(latency, .input(failed(.hostUnreachable))) : ()
        }
        let local = Endpoint(address: source, port: UInt16(40_000 + epoch % 20_000))
        if request.tls != nil, world.hosts[host].accepts {
            later(latency, .input(.handshakeBegan(epoch: epoch, local: local)))
            latency += .milliseconds(1 + random.below(200))
            if world.endsSecuring, random.chance(5) { return later(latency, .input(failed(.securingEnded))) }
            if world.hosts[host] == .stallsHandshake { return }
            let problem = FlowFailure.tls(.certificate(.selfSigned(subject: "a stranger")))
            if world.hosts[host] == .isStranger { return later(latency, .input(failed(problem))) }
        }
        switch world.hosts[host] {
        case .accepts, .kicks, .hangs, .isStranger, .stallsHandshake:
            let security = request.tls.map { _ in
                TLSSummary(
                    version: .v13, cipher: "", assurance: .verified, isResumed: false,
                    certificateEnd: .init(seconds: 0, isOwn: false))
            }
            if security != nil, random.chance(10) { later(latency * 2, .input(.certificateEnds(epoch: epoch))) }
            later(
                latency,
                .input(.dialSucceeded(epoch: epoch, local: local, remote: request.remote, security: security)))
            if let patience = world.patience, world.hosts[host] == .accepts {
                later(latency + patience + .milliseconds(random.below(4000)), .impatience(epoch: epoch))
            }
            guard world.hosts[host] == .kicks else { return }
            later(latency + .milliseconds(random.below(90_000)), .kick(epoch: epoch))
        case .refuses:
            later(latency, .input(failed(.refused)))
        case .unreachable:
            later(latency, .input(failed(.hostUnreachable)))
        case .silent:
            break
        }
    }
}
