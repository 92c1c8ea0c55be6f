// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Connection
internal import Glibc
internal import Platform
internal import RelayMessages
internal import TLS

/// One thread with flows of its own. The flows of different users have their turns in fair order: a user with
/// thousands of handshakes does not keep another one's waiting.
final class RelayWorker {
    /// What threads share.
    struct Shared: Sendable {
        let contexts = TLSContexts()
        let resumptions = Resumptions()
        let census: FlowCensus
    }

    private static let eventsPerTurn = 64
    /// How long the client of a flow that the agent has let go of may leave unread what it is still to be given.
    private static let patience = Duration.seconds(600)
    /// How often that is looked at, while there are such flows.
    private static let lookMilliseconds: CInt = 60_000
    /// How many such flows a user may have with one thread. Each holds a record of TLS, and a socket full of bytes.
    private static let mostLetGo = 64

    private let set: CInt
    private let shared: Shared
    private var flows: [UInt64: RelayedFlow] = [:]
    private var nextNumber: UInt64 = 1
    private var order = TurnOrder<UInt64>()
    private var letGo: Set<UInt64> = []
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: RelayedFlow.bufferSize, alignment: 16)

    /// A worker that watches through an epoll set.
    init(_ set: CInt, _ shared: Shared) {
        self.set = set
        self.shared = shared
    }

    /// What the set says of a channel that has just come: its number. A flow's parts have larger ones.
    static func token(ofChannel number: CInt) -> UInt64 { UInt64(number) }

    private static let firstToken: UInt64 = 1 << 32

    private static func token(_ number: UInt64, _ part: RelayedFlow.Part) -> UInt64 {
        firstToken + number * 4 + part.rawValue
    }

    /// Works, as long as the process lives.
    func run() -> Never {
        var events = [epoll_event](repeating: epoll_event(), count: Self.eventsPerTurn)
        while true {
            let timeout: CInt = order.isEmpty ? (letGo.isEmpty ? -1 : Self.lookMilliseconds) : 0
            let count = epoll_wait(set, &events, CInt(events.count), timeout)
            for event in events.prefix(max(Int(count), 0)) {
                hear(event.data.u64, Poller.Readiness(rawValue: event.events))
            }
            if let number = order.next() {
                let begun = BootClock.now()
                if let flow = flows[number] { serve(flow, number) }
                order.end(after: BootClock.now() - begun)
            }
            if !letGo.isEmpty { endWaiting() }
        }
    }

    private func hear(_ token: UInt64, _ events: Poller.Readiness) {
        guard token >= Self.firstToken else { return begin(CInt(token)) }
        let number = (token - Self.firstToken) / 4
        guard let flow = flows[number], let part = RelayedFlow.Part(rawValue: (token - Self.firstToken) % 4) else {
            return
        }
        flow.heard[part, default: []].formUnion(events)
        standInLine(flow, number)
    }

    private func standInLine(_ flow: RelayedFlow, _ number: UInt64) {
        guard !flow.isInLine else { return }
        flow.isInLine = true
        order.add(number, for: flow.user)
    }

    private func serve(_ flow: RelayedFlow, _ number: UInt64) {
        flow.isInLine = false
        let heard = flow.heard
        flow.takeTurn(buffer)
        if flow.isOver { return close(flow, number) }
        if flow.waitsSince != nil { wait(for: flow, number) }
        for part in RelayedFlow.Part.allCases {
            if heard[part] != nil || flow.watched[part] != flow.interest(in: part) { watch(flow, number, part) }
        }
    }

    private func watch(_ flow: RelayedFlow, _ number: UInt64, _ part: RelayedFlow.Part) {
        let interest = flow.interest(in: part)
        flow.watched[part] = interest
        guard let interest else { return }
        var event = epoll_event()
        event.events = interest.rawValue | EPOLLONESHOT.rawValue
        event.data.u64 = Self.token(number, part)
        epoll_ctl(set, EPOLL_CTL_MOD, flow.number(of: part), &event)
    }

    private func close(_ flow: RelayedFlow, _ number: UInt64) {
        for part in RelayedFlow.Part.allCases { epoll_ctl(set, EPOLL_CTL_DEL, flow.number(of: part), nil) }
        flows[number] = nil
        letGo.remove(number)
        shared.census.ended()
    }

    // MARK: - Flows that nobody hears of

    private func wait(for flow: RelayedFlow, _ number: UInt64) {
        guard letGo.insert(number).inserted else { return }
        let others = letGo.filter { flows[$0]?.user == flow.user }
        guard others.count > Self.mostLetGo else { return }
        let oldest = others.min { (flows[$0]?.waitsSince ?? .zero) < (flows[$1]?.waitsSince ?? .zero) }
        if let oldest, let flow = flows[oldest] { close(flow, oldest) }
    }

    private func endWaiting() {
        let now = BootClock.now()
        for number in letGo {
            guard let flow = flows[number], let since = flow.waitsSince, since + Self.patience < now else { continue }
            close(flow, number)
        }
    }

    // MARK: - New flows

    /// Takes the request that has come over a new channel.
    private func begin(_ number: CInt) {
        epoll_ctl(set, EPOLL_CTL_DEL, number, nil)
        let channel = MessageSocket(OwnedDescriptor(number))
        guard case .message(let bytes, var descriptors) = channel.receive(),
            let request = try? SecuringRequest(bytes[...]), descriptors.count == request.parts.count,
            let socket = descriptors.takeFirst(), let stream = descriptors.takeFirst(),
            let counts = descriptors.takeFirst(), let authorities = descriptors.takeFirst()
        else { return shared.census.ended() }
        let files = TLSFiles(
            authorities: authorities, certificate: descriptors.takeFirst(), key: descriptors.takeFirst(),
            password: descriptors.takeFirst())
        do throws(TLSFailure) {
            let session = try TLSSession(
                request.session, in: try shared.contexts.context(for: request.session.policy, files),
                resuming: shared.resumptions.of(request.user, request.connection))
            add(RelayedFlow(request, socket, stream, counts: counts, over: channel, session))
        } catch {
            // Who is not there to hear it needs it no more.
            try? channel.send(RelayWord.failed(.tls(error)).encoded)
            shared.census.ended()
        }
    }

    private func add(_ flow: RelayedFlow) {
        let number = nextNumber
        nextNumber += 1
        flows[number] = flow
        for part in RelayedFlow.Part.allCases {
            var event = epoll_event()
            // Watched for nothing before its first turn.
            event.events = EPOLLONESHOT.rawValue
            event.data.u64 = Self.token(number, part)
            // A descriptor that cannot be watched (`EPERM`) is a file, and no socket.
            guard epoll_ctl(set, EPOLL_CTL_ADD, flow.number(of: part), &event) == 0 else {
                return close(flow, number)
            }
        }
        standInLine(flow, number)
    }
}

/// The sessions that connections may take up again, by user and name.
final class Resumptions: Sendable {
    private struct Key: Hashable {
        let user: UInt32
        let connection: String
    }

    /// More connections than this and some begin with a full handshake; each has two tickets of some kilobytes.
    private static let most = 16_384

    private let kept = Lock<[Key: TLSResumption]>([:])

    func of(_ user: UInt32, _ connection: String) -> TLSResumption {
        let key = Key(user: user, connection: connection)
        return kept.withLock { kept in
            if let known = kept[key] { return known }
            if kept.count >= Self.most, let other = kept.keys.first { kept[other] = nil }
            let new = TLSResumption()
            kept[key] = new
            return new
        }
    }
}
