// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

@testable internal import DialtoneAgent
@testable internal import DialtoneCoalescing
@testable internal import DialtoneConnection

/// One connection's state machine with a driver that keeps the rules of its run loop, and a world that keeps none.
struct ConnectionLife: ~Copyable {
    private var machine: ConnectionStateMachine
    private var now = Duration.seconds(1000)
    private var timers: [ConnectionTimer: Duration] = [:]
    private var queries: [UInt64: NameQuestion] = [:]
    private var sockets: [UInt64: Socket] = [:]
    /// Flows whose own path is watched.
    private var watched: Set<UInt64> = []
    /// Addresses for which another uplink is looked for.
    private var detours: [Endpoint] = []
    private var planner = TimerCoalescer()
    private var random = Draw([])

    private struct Socket {
        let remote: Endpoint
        var isConnected = false
        var heartbeat: (Heartbeat, TimerCoalescer.Token)?
        var steps = 0
    }

    private static let local = Endpoint(address: IPAddress(v4: 0xC000_0207), port: 40_000)

    /// A connection of this policy; new, or taken over from a client or an earlier process.
    init(_ policy: ConnectionPolicy, _ draw: inout Draw) {
        machine = ConnectionStateMachine(policy: policy, now: now)
        // What is kept from one process to the next is bytes from outside, too.
        let epoch = draw.chance() ? UInt64(draw.byte()) : UInt64(bitPattern: Int64(draw.number()))
        switch draw.below(4) {
        case 0:
            let remote = Endpoint(address: IPAddress(v4: 0xC000_0201), port: 5060)
            let adoption = Adoption(
                epoch: epoch, local: Self.local, remote: remote,
                ownership: FlowOwnership(
                    reader: draw.pick([nil, .unknown]), session: draw.pick([.none, .open, .unknown])),
                lastProof: draw.maybe { .nanoseconds(Int64($0.number())) },
                past: draw.maybe {
                    .init(connectedAt: .nanoseconds(Int64($0.number())), since: .nanoseconds(Int64($0.number())))
                })
            var socket = Socket(remote: remote)
            socket.isConnected = true
            sockets[epoch] = socket
            tell(.adopted(adoption))
        case 1: tell(.reopened(epoch: epoch, draw.pick([.flowLost, .openingCut, .flowLost, .withoutFlow])))
        default: tell(.opened)
        }
    }

    /// Something happens.
    mutating func step(_ draw: inout Draw) {
        switch draw.below(8) {
        case 0:
            let path = path(&draw)
            if let epoch = watched.min(), draw.chance() { return tell(.flowPathChanged(epoch: epoch, path)) }
            tell(.pathChanged(path))
        case 1, 2: answer(&draw)
        case 3: advance(&draw)
        case 4: liveness(&draw)
        case 5: ownership(&draw)
        case 6: server(&draw)
        default: request(&draw)
        }
    }

    private mutating func tell(_ input: ConnectionInput) {
        for action in machine.process(input, now: now, using: &random) { perform(action) }
    }

    private mutating func perform(_ action: ConnectionAction) {
        switch action {
        case .resolve(let query, let question): queries[query] = question
        case .cancelResolution(let query): queries[query] = nil
        case .findDetour(let remote, _): detours.append(remote)
        case .openSocket(let request): sockets[request.epoch] = Socket(remote: request.remote)
        case .closeSocket(let epoch, _, _): forget(epoch)
        case .scheduleTimer(let timer, let deadline): timers[timer] = deadline
        case .cancelTimer(let timer): timers[timer] = nil
        case .keepAlive(let epoch, let heartbeat): keepAlive(epoch, heartbeat)
        case .playOpening(let epoch, let opening): sockets[epoch]?.steps = opening.steps.count
        case .observeFlowPath(let epoch, _): watched.insert(epoch)
        case .stopObservingFlowPath(let epoch): watched.remove(epoch)
        case .observePath, .stopObservingPath, .answerMessages, .watchInput, .probe, .configureSocket, .giveUpAnswers,
            .emit:
            break
        }
    }

    private mutating func keepAlive(_ epoch: UInt64, _ heartbeat: Heartbeat?) {
        if let (_, token) = sockets[epoch]?.heartbeat { planner.remove(token) }
        sockets[epoch]?.heartbeat = nil
        guard let heartbeat, sockets[epoch] != nil else { return }
        sockets[epoch]?.heartbeat = (heartbeat, planner.add(heartbeat.cadence, after: now))
    }

    private mutating func forget(_ epoch: UInt64) {
        keepAlive(epoch, nil)
        sockets[epoch] = nil
    }
}

// MARK: - What happens

extension ConnectionLife {
    private func path(_ draw: inout Draw) -> Path {
        let interface = Interface(index: 1 + draw.below(3), name: "eth0", kind: .wired)
        var path = Path(
            status: draw.pick([.satisfied, .unsatisfied, .unknown]), isCoherent: draw.byte() > 20, interface: interface,
            gateway: IPAddress(v4: 0xC000_02FE), source: IPAddress(v4: 0xC000_0207 + UInt32(draw.below(3))),
            supportsIPv4: true, supportsIPv6: draw.chance(), supportsDNS: draw.chance())
        // Only a path that leads to a flow's other end can be a better one for it.
        if draw.byte() < 200 { path.destination = sockets.keys.max().flatMap { sockets[$0]?.remote.address } }
        return path
    }

    /// A question, the search for another uplink or a socket has its answer.
    private mutating func answer(_ draw: inout Draw) {
        if let query = queries.keys.min(), let question = queries.removeValue(forKey: query) {
            if draw.chance() {
                return tell(
                    .resolutionFailed(query: query, draw.pick([.noSuchName, .noAddress, .temporary, .notOffered])))
            }
            return tell(.resolved(query: query, nameAnswer(to: question, &draw)))
        }
        // A socket may have its answer before the search has.
        if !detours.isEmpty, draw.chance() {
            return tell(.detourFound(detours.removeFirst(), Detour(path(&draw))))
        }
        guard let epoch = sockets.filter({ !$0.value.isConnected }).keys.min(), let socket = sockets[epoch] else {
            return
        }
        switch draw.below(4) {
        case 0: tell(.handshakeBegan(epoch: epoch, local: Self.local))
        case 1:
            // The driver says no more of a socket that failed.
            sockets[epoch] = nil
            tell(.dialFailed(epoch: epoch, draw.pick([.refused, .timedOut, .networkUnreachable, .reset])))
        default:
            sockets[epoch]?.isConnected = true
            tell(.dialSucceeded(epoch: epoch, local: Self.local, remote: socket.remote))
        }
    }

    private func nameAnswer(to question: NameQuestion, _ draw: inout Draw) -> NameAnswer {
        switch question {
        case .addresses(_, let family):
            .addresses(
                draw.several(4) { draw in
                    let number = UInt32(truncatingIfNeeded: draw.number())
                    let address = family == .v4 ? IPAddress(v4: number) : IPAddress(v6: UInt128(number) << 64 | 1)
                    return DestinationOrder.Candidate(address, source: draw.maybe { _ in Self.local.address })
                })
        case .services:
            .services(
                draw.several(6) { draw in
                    ServiceRecord(
                        priority: UInt16(draw.byte()), weight: UInt16(truncatingIfNeeded: draw.number()),
                        port: UInt16(truncatingIfNeeded: draw.number()),
                        target: draw.pick(["a", "b.example", "", "1.2.3"]))
                })
        case .pointers:
            .pointers(
                draw.several(4) { draw in
                    NamingAuthorityPointer(
                        order: UInt16(draw.byte()), preference: UInt16(draw.byte()),
                        flags: draw.pick(["s", "S", "a", ""]),
                        service: draw.pick(["SIP+D2T", "SIPS+D2T", "sip+d2u"]),
                        replacement: draw.pick(["_sip._tcp.a.example", "", "."]))
                })
        }
    }

    /// Time passes, up to the next timer or so long.
    private mutating func advance(_ draw: inout Draw) {
        let next = (timers.values + [planner.nextWake].compactMap(\.self)).min()
        now = max(now, draw.chance() ? next ?? now : now + .milliseconds(Int64(draw.byte()) * 1000))
        for (timer, deadline) in timers.sorted(by: { $0.value < $1.value }) where deadline <= now {
            timers[timer] = nil
            tell(.timerFired(timer))
        }
        let due = planner.take(at: now)
        for (epoch, socket) in sockets.sorted(by: { $0.key < $1.key }) {
            if let token = socket.heartbeat?.1, due.contains(token) { tell(.probeSent(epoch: epoch)) }
        }
    }

    /// The one socket that the driver speaks of, or none.
    private func standing(_ draw: inout Draw) -> UInt64? {
        let connected = sockets.filter(\.value.isConnected).keys.sorted()
        return connected.isEmpty ? nil : draw.pick(connected)
    }

    private mutating func liveness(_ draw: inout Draw) {
        guard let epoch = standing(&draw) else { return }
        switch draw.below(5) {
        case 0: tell(.probeSent(epoch: epoch))
        case 1: tell(.answered(epoch: epoch, count: 1 + draw.below(3)))
        case 2: tell(draw.chance() ? .answerHidden(epoch: epoch) : .undelivered(epoch: epoch))
        case 3: tell(.acknowledged(epoch: epoch, begun: now - .milliseconds(Int64(draw.byte()))))
        default:
            guard let steps = sockets[epoch]?.steps, steps > 0 else { return }
            switch draw.below(3) {
            case 0:
                tell(.openingAnswered(epoch: epoch, awaiting: 1 + draw.below(steps), begun: draw.maybe { _ in now }))
            case 1:
                sockets[epoch]?.steps = 0
                tell(.sessionOpened(epoch: epoch))
            default:
                sockets[epoch]?.steps = 0
                tell(
                    .openingFailed(
                        epoch: epoch, OpeningFailure(step: 1, cause: draw.pick(OpeningFailure.Cause.allCases))))
            }
        }
    }

    private mutating func ownership(_ draw: inout Draw) {
        guard let epoch = standing(&draw) else { return }
        switch draw.below(5) {
        case 0: tell(.arrived(epoch: epoch))
        case 1: tell(.taken(epoch: epoch, by: .unknown))
        case 2: tell(.parked(epoch: epoch))
        case 3: tell(.returned(epoch: epoch))
        default: tell(.abandoned(epoch: epoch, isUntouched: draw.chance(), isAlone: draw.chance()))
        }
    }

    private mutating func server(_ draw: inout Draw) {
        guard let epoch = standing(&draw) else { return }
        switch draw.below(4) {
        case 0: tell(.remoteClosed(epoch: epoch))
        case 1: tell(.flowFailed(epoch: epoch, draw.pick([.reset, .timedOut, .hostUnreachable])))
        case 2: tell(.serverAsked(.milliseconds(draw.milliseconds() % 100_000_000)))
        default: tell(.localAddressRemoved(Self.local.address))
        }
    }

    private mutating func request(_ draw: inout Draw) {
        switch draw.below(6) {
        case 0: tell(.resumed)
        // The daemon takes any that is not negative, up to what it calls the longest.
        case 1: tell(.redialRequested(after: draw.maybe { .milliseconds(Int64($0.byte()) * 1000) }))
        case 2, 3:
            guard let policy = try? ConnectionPolicy(draw.parameters(), user: 1000) else { return }
            tell(.policyChanged(policy))
        case 4: tell(.openingLeft(draw.maybe { _ in Opening([.init(send: [1], answer: nil, overtakers: [])]) }))
        default: if draw.byte() == 7 { tell(.closeRequested) }
        }
    }
}
