// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

@testable import DialtoneConnection

/// A random source that always chooses the same point of a range: a half by default.
struct FixedRandom: RandomNumberGenerator {
    var fraction = 0.5

    mutating func next() -> UInt64 { UInt64(fraction * 0x1p53) << 11 }
}

/// A machine with its clock and its random source, told things by the line.
struct Harness: ~Copyable {
    var machine: ConnectionStateMachine
    var now: Duration = .seconds(1000)
    var random = FixedRandom()
    /// When the user's budget lets it dial.
    var dialsFrom = Duration.zero

    /// - Parameter triesOtherUplinks: whether it looks for another uplink where one is silent; what is told of dials
    ///   elsewhere is told without.
    init(_ policy: ConnectionPolicy, triesOtherUplinks: Bool = false) {
        var policy = policy
        policy.triesOtherUplinks = triesOtherUplinks
        machine = ConnectionStateMachine(policy: policy, now: now)
    }

    init(_ remote: String = "tcp://192.0.2.7:5060") {
        self.init(ConnectionPolicy(remote: .of(remote)))
    }

    var status: ConnectionStatus { machine.status }

    /// Tells something, after letting time pass.
    @discardableResult
    mutating func tell(_ input: ConnectionInput, after delay: Duration = .zero) -> [ConnectionAction] {
        now += delay
        return machine.process(input, now: now, dialsFrom: dialsFrom, using: &random)
    }

    /// Tells several things at once, and gives what the last one was answered with.
    @discardableResult
    mutating func tell(all inputs: ConnectionInput...) -> [ConnectionAction] {
        inputs.map { tell($0) }.last ?? []
    }

    /// Answers the two questions for a name's addresses that were asked last, IPv6's first.
    @discardableResult
    mutating func answer(_ addresses: [IPAddress], after delay: Duration = .zero) -> [ConnectionAction] {
        now += delay
        let first = machine.numbers.query - 1
        var actions: [ConnectionAction] = []
        for (query, family) in [(first, IPAddress.Family.v6), (first + 1, .v4)] {
            let candidates = addresses.filter { $0.family == family }.map(DestinationOrder.Candidate.init(overWifi:))
            actions += tell(
                candidates.isEmpty
                    ? .resolutionFailed(query: query, .noAddress) : .resolved(query: query, .addresses(candidates)))
        }
        return actions
    }

    /// The event that leaves the machine as it is now.
    func event(
        _ kind: ConnectionEvent.Kind = .stateChanged, from previous: ConnectionStatus.State,
        after duration: Duration = .zero, because reason: StatusReason? = nil
    ) -> ConnectionAction {
        .emit(
            ConnectionEvent(
                kind: kind, status: status, previousState: previous, previousDuration: duration,
                reason: reason ?? status.reason))
    }
}

extension Harness {
    /// A harness whose connection has its flow, epoch 1, to a literal address.
    static func ready(_ policy: ConnectionPolicy = .office, path: Path = .wifi) -> Harness {
        var harness = Harness(policy)
        harness.tell(all: .opened, .pathChanged(path), .dialSucceeded(epoch: 1, local: .local, remote: .office))
        return harness
    }

    /// A harness whose connection to a literal address was refused for the first time.
    static func refused(_ policy: ConnectionPolicy = .office) -> Harness {
        var harness = Harness(policy)
        harness.tell(all: .opened, .pathChanged(.wifi), .dialFailed(epoch: 1, .refused))
        return harness
    }
}

extension DestinationOrder.Candidate {
    /// Reached over ``Path/wifi``, if by IPv4.
    init(overWifi address: IPAddress) {
        self.init(address, source: address.family == .v4 ? .wifiSource : nil)
    }
}

extension Remote {
    /// A remote that the test knows to be right.
    static func of(_ text: String) -> Remote {
        do { return try Remote(text) } catch { preconditionFailure("\(error)") }
    }
}

extension ConnectionPolicy {
    static let office = ConnectionPolicy(remote: .of("tcp://192.0.2.7:5060"))
    /// One whose flow ends with its address and its way.
    static let officeWithoutGrace = {
        var policy = office
        policy.grace = .zero
        return policy
    }()
    static let named = ConnectionPolicy(remote: .of("tcp://sip.example.com:5060"))
}

extension IPAddress {
    static let office = IPAddress(v4: 0xC000_0207)
    static let second = IPAddress(v4: 0xC633_6407)
    static let sixth = IPAddress(v6: 0x2001_0DB8 << 96 | 7)
    static let wifiSource = IPAddress(v4: 0xC0A8_0117)
    static let modemSource = IPAddress(v4: 0x0A40_0002)
}

extension Endpoint {
    static let office = Endpoint(address: .office, port: 5060)
    static let second = Endpoint(address: .second, port: 5060)
    static let sixth = Endpoint(address: .sixth, port: 5060)
    static let local = Endpoint(address: .wifiSource, port: 40_000)
    static let overModem = Endpoint(address: .modemSource, port: 50_000)
}

extension StandingFlow {
    /// A flow over ``Path/wifi`` to ``Endpoint/office``.
    static func overWifi(isBound: Bool = false) -> StandingFlow {
        StandingFlow(
            epoch: 1, ends: FlowEnds(local: .local, remote: .office, interface: "wlan0"), isBound: isBound,
            security: nil, settledAt: .seconds(10),
            liveness: Liveness(ConnectionPolicy.office.livenessFigures, connectedAt: .seconds(10)))
    }
}

extension Path {
    static let wifi = Path(
        generation: 1, status: .satisfied,
        interface: Interface(
            index: 3, name: "wlan0", kind: .wifi, addresses: [InterfaceAddress(.wifiSource, prefixLength: 24)]),
        gateway: IPAddress("192.168.1.1"), source: .wifiSource, destination: .office, supportsIPv4: true,
        supportsDNS: true)

    static let modem = Path(
        generation: 2, status: .satisfied,
        interface: Interface(
            index: 4, name: "wwan0", kind: .cellular, addresses: [InterfaceAddress(.modemSource, prefixLength: 30)]),
        gateway: IPAddress("10.64.0.1"), source: .modemSource, destination: .office, supportsIPv4: true,
        supportsDNS: true, isExpensive: true)

    /// Wi-Fi behind another router, under the same address.
    static let gatewayMoved = {
        var path = wifi
        path.gateway = IPAddress("192.168.1.254")
        return path
    }()

    static let none = Path(generation: 3, status: .unsatisfied, reason: .noRoute, destination: .office)
    static let unknown = Path(status: .unknown)

    /// The same path while the kernel's state is being re-read.
    var incoherent: Path {
        var copy = self
        copy.isCoherent = false
        return copy
    }
}

extension FlowRequest {
    /// The request of a flow over ``Path/wifi`` to ``Endpoint/office``.
    static func office(epoch: UInt64, policy: ConnectionPolicy = .office) -> FlowRequest {
        FlowRequest(
            epoch: epoch, remote: .office, source: .wifiSource, interfaceIndex: 3, options: policy.socketOptions)
    }

    /// The request of a flow over ``Path/wifi`` to ``Endpoint/second``.
    static func second(epoch: UInt64) -> FlowRequest {
        FlowRequest(
            epoch: epoch, remote: .second, source: .wifiSource, interfaceIndex: 3,
            options: ConnectionPolicy.named.socketOptions)
    }

    /// The request of a flow over ``Path/modem`` to ``Endpoint/office``.
    static func overModem(epoch: UInt64) -> FlowRequest {
        FlowRequest(
            epoch: epoch, remote: .office, source: .modemSource, interfaceIndex: 4,
            options: ConnectionPolicy.office.socketOptions)
    }
}
