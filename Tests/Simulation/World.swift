// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

@testable import DialtoneConnection

/// The network around one agent: two uplinks, four hosts that answer to a name, and a name server.
struct World {
    /// What a host does with a SYN, and with what comes on a connection.
    enum Host: CaseIterable {
        case accepts
        /// Accepts, and closes or resets a moment later.
        case kicks
        /// Accepts; its program hangs, and answers no keepalive.
        case hangs
        /// Accepts; with TLS it shows a certificate that nobody trusts.
        case isStranger
        /// Accepts; with TLS it never ends the handshake.
        case stallsHandshake
        case refuses
        /// Answers nothing, not even on connections that stand.
        case silent
        /// A router says that it is not there.
        case unreachable

        /// Whether a socket gets connected.
        var accepts: Bool {
            switch self {
            case .accepts, .kicks, .hangs, .isStranger, .stallsHandshake: true
            case .refuses, .silent, .unreachable: false
            }
        }
    }

    /// What the name server does with a question.
    enum NameServer: CaseIterable {
        case answers
        case temporary
        case noSuchName
        case empty
        case silent
        /// Answers for IPv4, and swallows questions for IPv6.
        case swallowsIPv6
    }

    /// What a server does with a login.
    enum Login: CaseIterable {
        case accepts
        /// Answers a step otherwise than was expected.
        case refuses
        case silent
        case hangsUp
    }

    /// What the domain says of the service's hosts.
    enum Services: CaseIterable {
        /// There is no record.
        case none
        /// A first host that owns the first two addresses, and a second one that owns the others.
        case two
        /// The service is not offered.
        case refused
        /// The rules of the domain lead to another record than the usual one.
        case byRule
    }

    /// Which way packets take.
    enum Link: Equatable {
        case none
        case uplink(Int)
        /// The way is there, and whoever watches the path found no address for the name.
        case unresolved(Int)
        /// Some way, and netlink cannot be asked which.
        case unknown
    }

    /// Two of either family.
    static let hosts =
        (1...2).map { IPAddress(v4: 0xC000_0200 + $0) } + (1...2).map { IPAddress(v6: 0x2001_0DB8 << 96 + UInt128($0)) }
    static let port: UInt16 = 5060
    static let interfaces = (0..<2).map { uplink in
        Interface(
            index: 3 + uplink, name: "up\(uplink)", kind: .wired,
            addresses: [
                InterfaceAddress(source(of: uplink, .v4), prefixLength: 24),
                InterfaceAddress(source(of: uplink, .v6), prefixLength: 64),
            ])
    }

    static func source(of uplink: Int, _ family: IPAddress.Family) -> IPAddress {
        switch family {
        case .v4: IPAddress(v4: 0x0A00_0002 + UInt32(uplink) << 16)
        case .v6: IPAddress(v6: 0x2001_0DB8_000A << 80 + UInt128(uplink) << 64 + 2)
        }
    }

    static func uplink(of source: IPAddress) -> Int? { (0..<2).first { self.source(of: $0, source.family) == source } }

    var link = Link.none
    /// Whether the target is a name: of an address nobody has to ask.
    var isNamed = false
    /// Which uplinks have their addresses.
    var hasAddress = [true, true]
    /// Uplinks behind whose gateway nothing gets through.
    var deadUplinks: Set<Int> = []
    /// Whether a flow from the one uplink's address goes on while packets take the other.
    var isMultihomed = false
    var hosts = [Host](repeating: .accepts, count: 4)
    /// The hosts that the name leads to, in the order of the answer.
    var answer = [0]
    var nameServer = NameServer.answers
    var services = Services.none
    /// Whether what has the keys ends in the middle of a handshake now and then.
    var endsSecuring = true
    var supportsDNS = true
    var generation: UInt64 = 0
    var login = Login.accepts
    /// Whether a login ends the other flow of the same client.
    var hasOneSession = false
    /// How long the server waits for a login before it ends a flow; `nil` for ever.
    var patience: Duration?
    /// Flows that somebody in the middle has forgotten: nothing comes through any more, either way.
    var forgotten: Set<UInt64> = []

    func isPresent(_ address: IPAddress) -> Bool { World.uplink(of: address).map { hasAddress[$0] } ?? false }

    /// The truth about the way to the first host.
    func path() -> Path {
        switch link {
        case .none:
            return Path(generation: generation, status: .unsatisfied, reason: .noRoute, destination: Self.hosts[0])
        case .unknown:
            return Path(generation: generation, status: .unknown)
        case .unresolved where isNamed:
            return Path(
                generation: generation, status: .unsatisfied, reason: .nameUnresolved, supportsDNS: supportsDNS)
        case .uplink(let uplink), .unresolved(let uplink):
            return path(to: Self.hosts[0], by: uplink)
        }
    }

    /// The truth about the way to any host.
    func path(to address: IPAddress) -> Path {
        let uplink: Int
        switch link {
        case .none:
            return Path(generation: generation, status: .unsatisfied, reason: .noRoute, destination: address)
        case .unknown:
            return Path(generation: generation, status: .unknown)
        case .uplink(let used), .unresolved(let used):
            uplink = used
        }
        return path(to: address, by: uplink)
    }

    /// The truth about the way to any host by one of the uplinks.
    func path(to address: IPAddress, by uplink: Int) -> Path {
        guard hasAddress[uplink] else {
            return Path(generation: generation, status: .unsatisfied, reason: .noAddress, destination: address)
        }
        return Path(
            generation: generation, status: .satisfied, interface: Self.interfaces[uplink],
            gateway: IPAddress(v4: 0x0A00_0001 + UInt32(uplink) << 16),
            source: Self.source(of: uplink, address.family), destination: address,
            supportsIPv4: true, supportsDNS: supportsDNS)
    }

    /// A way by the other uplink.
    func detour(to destination: IPAddress, around interface: Int) -> Detour? {
        guard let other = (0..<2).first(where: { Self.interfaces[$0].index != interface }) else { return nil }
        return Detour(path(to: destination, by: other))
    }

    /// The way packets really take: an unknown one is the first uplink that has an address.
    var usedUplink: Int? {
        switch link {
        case .none: nil
        case .uplink(let uplink), .unresolved(let uplink): hasAddress[uplink] ? uplink : nil
        case .unknown: hasAddress.firstIndex(of: true)
        }
    }

    /// Whether packets of a flow get there and back.
    func carries(_ request: FlowRequest, from local: IPAddress) -> Bool {
        guard let own = World.uplink(of: local), hasAddress[own], !deadUplinks.contains(own),
            !forgotten.contains(request.epoch)
        else { return false }
        if request.isBoundToInterface { return true }
        return usedUplink.map { isMultihomed || $0 == own } ?? false
    }

    /// What the name server answers; `nil` for silence.
    func answer(to question: NameQuestion) -> Result<NameAnswer, ResolutionFailure>? {
        guard usedUplink != nil, supportsDNS else { return .failure(.temporary) }
        switch nameServer {
        case .temporary: return .failure(.temporary)
        case .noSuchName: return .failure(.noSuchName)
        case .empty: return .failure(.noAddress)
        case .silent: return nil
        case .swallowsIPv6:
            if case .addresses(_, .v6) = question { return nil }
        case .answers: break
        }
        switch question {
        case .addresses(let name, let family): return addresses(of: name, family)
        case .services(let name): return records(at: name)
        case .pointers:
            guard services == .byRule else { return .failure(.noAddress) }
            let rules = ["SIP+D2T", "SIPS+D2T"].map { service in
                NamingAuthorityPointer(
                    order: 1, preference: 1, flags: "s", service: service, replacement: Self.ruledName)
            }
            return .success(.pointers(rules))
        }
    }

    static let ruledName = "_sip._tcp.elsewhere.example.com"

    private func addresses(of name: String, _ family: IPAddress.Family) -> Result<NameAnswer, ResolutionFailure> {
        let owned: [Int] =
            switch name {
            case "a.example.com": [0, 2]
            case "b.example.com": [1, 3]
            default: answer
            }
        let candidates = owned.map { Self.hosts[$0] }.filter { $0.family == family }.map { address in
            DestinationOrder.Candidate(address, source: usedUplink.map { Self.source(of: $0, family) })
        }
        return candidates.isEmpty ? .failure(.noAddress) : .success(.addresses(candidates))
    }

    private func records(at name: String) -> Result<NameAnswer, ResolutionFailure> {
        let two = ["a.example.com", "b.example.com"].enumerated().map { index, target in
            ServiceRecord(priority: UInt16(index), weight: 1, port: Self.port, target: target)
        }
        switch services {
        case .none: return .failure(.noSuchName)
        case .two: return .success(.services(two))
        case .refused: return .success(.services([ServiceRecord(priority: 0, weight: 0, port: 0, target: "")]))
        case .byRule: return name == Self.ruledName ? .success(.services(two)) : .failure(.noAddress)
        }
    }
}
