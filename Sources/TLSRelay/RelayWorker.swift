// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import DialtoneTLS
internal import Glibc

/// One thread with flows of its own. The flows of different users have their turns in fair order: a user with
/// thousands of handshakes does not keep another one's waiting.
final class RelayWorker {
    /// What threads share.
    struct Shared: Sendable {
        let contexts = TLSContexts()
        let resumptions = Resumptions()
        let counts = CountsFiles()
        let census: FlowCensus
    }

    private static let eventsPerTurn = 64
    /// How long the client of a flow that the agent has let go of may leave unread what it is still to be given.
    private static let patience = Duration.seconds(600)
    /// How often that is looked at, while there are such flows.
    private static let lookInterval = Duration.seconds(60)
    /// So many handshakes leave memory behind that is given back to the kernel: each takes some 80 KB for a moment, and
    /// what is freed lies between what stays.
    private static let burst = 50
    /// Once there was nothing to do for so long.
    private static let trimMilliseconds: CInt = 1000
    /// How many such flows a user may have with one thread. Each holds a record of TLS, and a socket full of bytes.
    private static let mostLetGo = 64
    /// How many flows are behind with their counts while there is much to do.
    private static let mostUncounted = 64

    /// What is done in a turn.
    private enum Work {
        case begin(FlowRequest)
        case serve(UInt64)
    }

    private let set: CInt
    private let shared: Shared
    private var flows: [UInt64: RelayedFlow] = [:]
    private var nextNumber: UInt64 = 1
    private var order = TurnOrder<Work>()
    private var letGo: Set<UInt64> = []
    /// Those that have something to write down.
    private var uncounted: Set<UInt64> = []
    /// When they are looked at next.
    private var nextLook = Duration.zero
    /// How many handshakes began since memory was last given back.
    private var begun = 0
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
            if order.isEmpty || uncounted.count >= Self.mostUncounted { count() }
            let count = epoll_wait(set, &events, CInt(events.count), timeout)
            if count == 0, order.isEmpty, begun >= Self.burst {
                ResidentMemory.trim()
                begun = 0
            }
            for event in events.prefix(max(Int(count), 0)) {
                hear(event.data.u64, Poller.Readiness(rawValue: event.events))
            }
            if let work = order.next() {
                let begun = BootClock.now()
                switch work {
                case .begin(let request): begin(request)
                case .serve(let number): if let flow = flows[number] { serve(flow, number) }
                }
                order.end(after: BootClock.now() - begun)
            }
            if !letGo.isEmpty { endWaiting() }
        }
    }

    /// How long there may be nothing to do before there is something all the same, in milliseconds; -1 for ever.
    private var timeout: CInt {
        if !order.isEmpty { return 0 }
        if begun >= Self.burst { return Self.trimMilliseconds }
        if letGo.isEmpty { return -1 }
        // A millisecond more, since what is left of one is cut off.
        return CInt(max(nextLook - BootClock.now(), .zero).milliseconds + 1)
    }

    private func hear(_ token: UInt64, _ events: Poller.Readiness) {
        guard token >= Self.firstToken else { return receive(CInt(token)) }
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
        order.add(.serve(number), for: flow.user)
    }

    private func serve(_ flow: RelayedFlow, _ number: UInt64) {
        flow.isInLine = false
        let heard = flow.heard
        flow.takeTurn(buffer)
        if flow.isOver { return close(flow, number) }
        if flow.owesCount { uncounted.insert(number) }
        if flow.waitsSince != nil { wait(for: flow, number) }
        for part in RelayedFlow.Part.allCases {
            if heard[part] != nil || flow.watched[part] != flow.interest(in: part) { watch(flow, number, part) }
        }
    }

    private func count() {
        for number in uncounted { flows[number]?.publish() }
        uncounted.removeAll(keepingCapacity: true)
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
        unwatch(flow)
        flows[number] = nil
        letGo.remove(number)
        shared.census.ended()
    }

    /// Not by closing its descriptors: the agent has copies of them, and an epoll set knows the files behind.
    private func unwatch(_ flow: RelayedFlow) {
        for part in RelayedFlow.Part.allCases { epoll_ctl(set, EPOLL_CTL_DEL, flow.number(of: part), nil) }
    }

    // MARK: - Flows that nobody hears of

    private func wait(for flow: RelayedFlow, _ number: UInt64) {
        if letGo.isEmpty { nextLook = BootClock.now() + Self.lookInterval }
        guard letGo.insert(number).inserted else { return }
        let others = letGo.filter { flows[$0]?.user == flow.user }
        guard others.count > Self.mostLetGo else { return }
        let oldest = others.min { (flows[$0]?.waitsSince ?? .zero) < (flows[$1]?.waitsSince ?? .zero) }
        if let oldest, let flow = flows[oldest] { close(flow, oldest) }
    }

    private func endWaiting() {
        let now = BootClock.now()
        guard now >= nextLook else { return }
        nextLook = now + Self.lookInterval
        for number in letGo {
            guard let flow = flows[number], let since = flow.waitsSince, since + Self.patience < now else { continue }
            close(flow, number)
        }
    }

    // MARK: - New flows

    /// Takes the request that has come over a new channel. To do as it says is for a turn of its user's.
    private func receive(_ number: CInt) {
        epoll_ctl(set, EPOLL_CTL_DEL, number, nil)
        let channel = MessageSocket(OwnedDescriptor(number))
        guard case .message(let bytes, let descriptors) = channel.receive(),
            let request = try? SecuringRequest(bytes[...]), descriptors.count == request.descriptorCount
        else { return shared.census.ended() }
        order.add(.begin(FlowRequest(request, descriptors, channel)), for: request.user)
    }

    private func begin(_ request: FlowRequest) {
        begun += 1
        do throws(RelayFailure) {
            try add(request.flow(shared))
        } catch {
            // Who is not there to hear it needs it no more.
            try? request.channel?.send(RelayWord.failed(error).encoded)
            shared.census.ended()
        }
    }

    private func add(_ flow: RelayedFlow) throws(RelayFailure) {
        let number = nextNumber
        nextNumber += 1
        for part in RelayedFlow.Part.allCases {
            var event = epoll_event()
            // Watched for nothing before its first turn.
            event.events = EPOLLONESHOT.rawValue
            event.data.u64 = Self.token(number, part)
            // A descriptor that cannot be watched (`EPERM`) is a file, and no socket.
            guard epoll_ctl(set, EPOLL_CTL_ADD, flow.number(of: part), &event) == 0 else {
                let failure = RelayFailure.socket(errno)
                flow.fail(failure)
                unwatch(flow)
                throw failure
            }
        }
        flows[number] = flow
        standInLine(flow, number)
    }
}

/// What came over a channel, until its turn.
private final class FlowRequest {
    private let request: SecuringRequest
    private var descriptors: MessageSocket.Descriptors
    private(set) var channel: MessageSocket?

    init(
        _ request: SecuringRequest, _ descriptors: consuming MessageSocket.Descriptors,
        _ channel: consuming MessageSocket
    ) {
        self.request = request
        self.descriptors = descriptors
        self.channel = consume channel
    }

    /// Begins a session with the server.
    func flow(_ shared: RelayWorker.Shared) throws(RelayFailure) -> RelayedFlow {
        let missing = RelayFailure.socket(EBADF)
        guard let socket = descriptors.takeFirst(), let stream = descriptors.takeFirst(),
            let counts = descriptors.takeFirst(), let authorities = descriptors.takeFirst()
        else { throw missing }
        let files = TLSFiles(
            authorities: authorities, certificate: descriptors.takeFirst(), key: descriptors.takeFirst(),
            password: descriptors.takeFirst())
        let session: TLSSession
        do throws(TLSFailure) {
            session = try TLSSession(
                request.session, in: try shared.contexts.context(for: request.session.policy, files),
                resuming: shared.resumptions.of(request.user, request.connection))
        } catch {
            throw .tls(error)
        }
        guard let channel = channel.take() else { throw missing }
        return RelayedFlow(request, socket, stream, counts: shared.counts.file(counts), over: channel, session)
    }
}

/// The sessions that connections may take up again, by user and name.
final class Resumptions: Sendable {
    /// How many connections of a user have some: as many as a user may have (`connections_per_user`). Each has two
    /// tickets of a kilobyte or more, and a copy of the server's certificates. The one that asked longest ago makes
    /// room.
    private static let mostOfUser = 1024
    /// And in all.
    private static let most = 8192

    private struct Users {
        var sessions: [UInt32: [String: (resumption: TLSResumption, asked: UInt64)]] = [:]
        var count = 0
        var clock: UInt64 = 0

        mutating func makeRoom(for user: UInt32) {
            let crowded = count >= most ? sessions.max { $0.value.count < $1.value.count }?.key : nil
            guard let from = crowded ?? (sessions[user]?.count ?? 0 >= mostOfUser ? user : nil),
                let oldest = sessions[from]?.min(by: { $0.value.asked < $1.value.asked })?.key
            else { return }
            sessions[from]?[oldest] = nil
            if sessions[from]?.isEmpty == true { sessions[from] = nil }
            count -= 1
        }
    }

    private let users = Lock(Users())

    func of(_ user: UInt32, _ connection: String) -> TLSResumption {
        users.withLock { users in
            users.clock += 1
            if let known = users.sessions[user]?[connection] {
                users.sessions[user]?[connection]?.asked = users.clock
                return known.resumption
            }
            users.makeRoom(for: user)
            let new = TLSResumption()
            users.sessions[user, default: [:]][connection] = (new, users.clock)
            users.count += 1
            return new
        }
    }
}
