// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// A network whose paths and names the test decides, and who watches or asks right now.
@AgentQueue
final class Surroundings: PathSource, NameSource, ConnectionObserver {
    final class Watch: Ongoing {
        fileprivate var end: () -> Void = {}
        fileprivate var isOver = false
        func cancel() { end() }
    }

    var path: Path {
        didSet { for handler in observers.values { handler(path) } }
    }
    /// The path to addresses where it is another than that to names; told to whoever watches from now on.
    var pathOfAddresses: Path?
    /// What names are answered with; `nil` leaves questions open.
    var answer: Result<[IPAddress], ResolutionFailure>? = .success([.loopback])
    /// Another uplink to everything.
    var detour: Detour?
    /// Which network every path leads through.
    var network: NetworkIdentity?
    let intervals = IntervalLearners()
    private(set) var targets: [Target] = []
    private(set) var questions: [NameQuestion] = []
    private(set) var openQuestions = 0
    private var observers: [Int: @AgentQueue (Path) -> Void] = [:]
    private var nextObserver = 0
    let events = Inbox<ConnectionEvent>()
    /// The flows on which a message was answered.
    let answered = Inbox<UInt64>()
    /// How flows get TLS.
    private let relay: RelayAccess
    private(set) lazy var context = DialerContext(paths: self, names: self, relay: relay, intervals: intervals)

    init(_ path: Path, relay: RelayAccess = .test) {
        self.path = path
        self.relay = relay
    }

    var watchedPaths: Int { observers.count }

    func observePath(
        to target: Target, for account: Account, _ handler: @escaping @AgentQueue (Path) -> Void
    ) -> any Ongoing {
        targets.append(target)
        let number = nextObserver
        nextObserver += 1
        observers[number] = handler
        let watch = Watch()
        watch.end = { self.observers[number] = nil }
        switch target.host {
        case .name: handler(path)
        case .address: handler(pathOfAddresses ?? path)
        }
        return watch
    }

    func detour(to remote: Endpoint, around avoided: Int, for target: Target) -> Detour? { detour }

    func network(of path: Path) -> NetworkIdentity? { network }

    func ask(
        _ question: NameQuestion, for target: Target,
        _ completion: @escaping @AgentQueue (Result<NameAnswer, ResolutionFailure>) -> Void
    ) -> any Ongoing {
        questions.append(question)
        let watch = Watch()
        if let answer {
            AgentQueue.async {
                if !watch.isOver { completion(answer.flatMap { Self.answer($0, to: question) }) }
            }
            watch.end = { watch.isOver = true }
        } else {
            openQuestions += 1
            watch.end = { self.openQuestions -= 1 }
        }
        return watch
    }

    private static func answer(
        _ addresses: [IPAddress], to question: NameQuestion
    ) -> Result<NameAnswer, ResolutionFailure> {
        guard case .addresses(_, let family) = question else { return .failure(.noSuchName) }
        let candidates = addresses.filter { $0.family == family }.map {
            DestinationOrder.Candidate($0, source: $0.isLoopback ? $0 : nil)
        }
        return candidates.isEmpty ? .failure(.noAddress) : .success(.addresses(candidates))
    }

    /// How the clients of connections that are made from now on are woken: here, by nothing but an event.
    var clientWakes = Wakes.Settings(policy: WakePolicy(), reasons: [], isTended: false, budget: .seconds(30))
    /// What is to be launched, and with which flow.
    let launches = Inbox<(attempt: WakeAttempt.ID, flow: Client?)>()

    func connection(
        _ connection: ConnectionDriver, did event: ConnectionEvent, wake: StandingWake?, _ report: WakeReport?
    ) {
        if report == nil { events.put(event) }
    }

    func connectionAnswered(_ connection: ConnectionDriver) { answered.put(connection.status.epoch) }
    func connection(_ connection: ConnectionDriver, attempts attempt: WakeAttempt, _ process: KnownProcess?) {}

    func connection(
        _ connection: ConnectionDriver, launches attempt: WakeAttempt, with flow: consuming HandedFlow?
    ) {
        switch consume flow {
        case .some(let flow): launches.put((attempt.id, Client(flow)))
        case .none: launches.put((attempt.id, nil))
        }
    }

    func connection(_ connection: ConnectionDriver, finds attempt: WakeAttempt.ID) {}

    func presence(of process: KnownProcess) -> ClientPresence { .alive }

    func isWatched(by process: KnownProcess?) -> Bool { false }

    /// A connection in these surroundings, begun.
    ///
    /// - Parameter heartbeat: one whose figures may be shorter than a user may choose, so that no test takes minutes.
    func connection(
        to remote: String, heartbeat: Heartbeat? = nil, account: Account = .administrator,
        _ adjust: (inout ConnectionPolicy) -> Void = { _ in }
    ) throws -> ConnectionDriver {
        var policy = ConnectionPolicy(remote: try Remote(remote))
        adjust(&policy)
        try policy.validate()
        if let heartbeat { policy.heartbeat = heartbeat }
        let driver = ConnectionDriver(
            policy: policy, wakes: clientWakes, account: account, context: context, observer: self)
        // By which its TLS sessions are taken up.
        driver.label = ConnectionLabel(name: remote, user: account.user)
        driver.open()
        return driver
    }

    /// A connection to a server that it trusts, and that has time enough for the handshake on a busy machine.
    func connection(
        to server: SecureServer, _ adjust: (inout ConnectionPolicy) -> Void = { _ in }
    ) throws -> ConnectionDriver {
        try connection(to: "tls://localhost:\(server.endpoint.port)") {
            $0.tls = server.policy
            $0.tls.serverName = SecureServer.name
            $0.connectTimeout = .seconds(60)
            adjust(&$0)
        }
    }

    /// A connection that begins with a flow which somebody else made.
    func connection(
        to remote: String, adopting descriptor: consuming OwnedDescriptor, _ adoption: Adoption
    ) throws -> ConnectionDriver {
        let policy = ConnectionPolicy(remote: try Remote(remote))
        let driver = ConnectionDriver(policy: policy, wakes: clientWakes, context: context, observer: self)
        try driver.adopt(descriptor, adoption)
        return driver
    }

    /// Takes all dials that a user may make at once, and so many more.
    func useUpBudget(of account: Account, owing owed: Int) {
        let now = BootClock.now()
        for number in 0..<NetworkBudget.dials.burst + owed {
            let server = Endpoint(address: .loopback, port: UInt16(1 + number))
            _ = context.budget.attempt(at: server, for: account, isPaid: false, now: now)
        }
    }

    /// How many keepalives are planned.
    var wakes: Int { context.wakes.count }

    /// The next event that enters `state`.
    func entered(_ state: ConnectionStatus.State) async -> ConnectionEvent? {
        await events.next { $0.kind == .stateChanged && $0.status.state == state }
    }
}

extension Heartbeat {
    /// One whose answer has as long as the test says.
    init(_ kind: KeepaliveProtocol, interval: Duration, answerDeadline: Duration) {
        self.init(kind, interval: interval)
        self.answerDeadline = answerDeadline
    }
}

extension Path {
    /// The way to this machine itself.
    static func loopback(
        source: IPAddress = .loopback, gateway: IPAddress? = nil, supportsDNS: Bool = true
    ) -> Path {
        Path(
            status: .satisfied,
            interface: Interface(
                index: 1, name: "lo", kind: .loopback, addresses: [InterfaceAddress(source, prefixLength: 8)]),
            gateway: gateway, source: source, destination: .loopback, isLocalAddress: true, supportsIPv4: true,
            supportsDNS: supportsDNS)
    }

    /// That to a domain which has no address of its own.
    static let ofADomain = Path(status: .unsatisfied, reason: .nameUnresolved, supportsDNS: true)

    static let none = Path(status: .unsatisfied, reason: .noRoute, destination: .loopback)
}
