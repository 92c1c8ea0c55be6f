// SPDX-License-Identifier: Apache-2.0

import NetworkPath

@testable import Supervisor

/// The network around one agent: two uplinks, four hosts that answer to a name, and a name server.
struct World {
    /// What a host does with a SYN.
    enum Host: CaseIterable {
        case accepts
        /// Accepts, and closes or resets a moment later.
        case kicks
        /// Accepts; with TLS it shows a certificate that nobody trusts.
        case isStranger
        /// Accepts; with TLS it never ends the handshake.
        case stallsHandshake
        case refuses
        /// Answers nothing.
        case silent
        /// A router says that it is not there.
        case unreachable

        /// Whether a socket gets connected.
        var accepts: Bool {
            switch self {
            case .accepts, .kicks, .isStranger, .stallsHandshake: true
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

    static let hosts = (1...4).map { IPAddress(v4: 0xC000_0200 + $0) }
    static let port: UInt16 = 5060
    static let interfaces = (0..<2).map { uplink in
        Interface(
            index: 3 + uplink, name: "up\(uplink)", kind: .wired,
            addresses: [InterfaceAddress(source(of: uplink), prefixLength: 24)])
    }

    static func source(of uplink: Int) -> IPAddress { IPAddress(v4: 0x0A00_0002 + UInt32(uplink) << 16) }

    var link = Link.none
    /// Which uplinks have their address.
    var hasAddress = [true, true]
    var hosts = [Host](repeating: .accepts, count: 4)
    /// The hosts that the name leads to, in the order of the answer.
    var answer = [0]
    var nameServer = NameServer.answers
    var supportsDNS = true
    var generation: UInt64 = 0

    func isPresent(_ address: IPAddress) -> Bool {
        (0..<2).contains { hasAddress[$0] && Self.source(of: $0) == address }
    }

    /// The truth about the way to the first host.
    func path() -> Path {
        switch link {
        case .none:
            return Path(generation: generation, status: .unsatisfied, reason: .noRoute, destination: Self.hosts[0])
        case .unknown:
            return Path(generation: generation, status: .unknown)
        case .unresolved:
            return Path(
                generation: generation, status: .unsatisfied, reason: .nameUnresolved, supportsDNS: supportsDNS)
        case .uplink(let uplink):
            return Path(
                generation: generation, status: .satisfied, interface: Self.interfaces[uplink],
                gateway: IPAddress(v4: 0x0A00_0001 + UInt32(uplink) << 16), source: Self.source(of: uplink),
                destination: Self.hosts[0], supportsIPv4: true, supportsDNS: supportsDNS)
        }
    }

    /// The way packets really take: an unknown one is the first uplink that has an address.
    var usedUplink: Int? {
        switch link {
        case .none: nil
        case .uplink(let uplink), .unresolved(let uplink): hasAddress[uplink] ? uplink : nil
        case .unknown: hasAddress.firstIndex(of: true)
        }
    }
}
