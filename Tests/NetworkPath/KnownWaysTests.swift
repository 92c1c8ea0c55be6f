// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@Suite struct KnownWaysTests {
    private static let server = IPAddress(v4: 0xCB00_710A)

    /// A way to the server.
    ///
    /// - Parameter addresses: those of the interface; the first is the source.
    private static func way(
        _ index: Int, gateway: String? = "192.0.2.1", _ addresses: [String], status: Path.Status = .satisfied
    ) -> Path {
        var path = Path(status: status)
        let own = addresses.compactMap { IPAddress($0) }
        path.interface = Interface(
            index: index, name: "wan\(index)", kind: .wired,
            addresses: own.map { InterfaceAddress($0, prefixLength: 24) })
        path.gateway = gateway.flatMap { IPAddress($0) }
        path.source = own.first
        path.destination = server
        return path
    }

    /// What becomes of a socket from a local address at last when a way follows another one.
    private static func fate(
        of local: String, to remote: IPAddress = server, _ paths: Path...
    ) -> WayChange.Fate {
        var ways = KnownWays()
        var last: WayChange?
        for path in paths { last = ways.note(path) }
        return IPAddress(local).flatMap { last?.fate(from: $0, to: remote) } ?? .untouched
    }

    @Test func `the first way that is known changes nothing, and neither does the same once more`() {
        #expect(Self.fate(of: "192.0.2.2", Self.way(1, ["192.0.2.2"])) == .untouched)
        #expect(Self.fate(of: "192.0.2.2", Self.way(1, ["192.0.2.2"]), Self.way(1, ["192.0.2.2"])) == .untouched)
    }

    @Test func `a socket on an interface that packets leave by no more is lost, and no other one`() {
        let ways = (Self.way(1, ["192.0.2.2", "192.0.2.3"]), Self.way(2, ["198.51.100.2"]))
        #expect(Self.fate(of: "192.0.2.2", ways.0, ways.1) == .lost)
        #expect(Self.fate(of: "192.0.2.3", ways.0, ways.1) == .lost, "of an address that is no source any more")
        #expect(Self.fate(of: "198.51.100.2", ways.0, ways.1) == .untouched, "dialled over the new way already")
        #expect(Self.fate(of: "192.0.2.2", to: IPAddress(v4: 0xCB00_710B), ways.0, ways.1) == .untouched)
    }

    @Test func `no path between two ways hides the change of neither`() {
        let none = Self.way(1, [], status: .unsatisfied)
        let (first, second) = (Self.way(1, ["192.0.2.2"]), Self.way(2, ["198.51.100.2"]))
        #expect(Self.fate(of: "192.0.2.2", first, none) == .untouched)
        #expect(Self.fate(of: "192.0.2.2", first, none, first) == .untouched)
        #expect(Self.fate(of: "192.0.2.2", first, none, second) == .lost)
    }

    @Test func `a socket loses an address that is gone, and keeps one that is only no longer preferred`() {
        let before = Self.way(1, ["192.0.2.2"])
        #expect(Self.fate(of: "192.0.2.2", before, Self.way(1, ["192.0.2.9"])) == .lost)
        let both = Self.way(1, ["192.0.2.9", "192.0.2.2"])
        #expect(Self.fate(of: "192.0.2.2", before, both) == .untouched)
        #expect(Self.fate(of: "192.0.2.2", before, both, Self.way(1, ["192.0.2.9"])) == .lost)
    }

    @Test func `behind another gateway it is in doubt`() {
        let (before, after) = (Self.way(1, ["192.0.2.2"]), Self.way(1, gateway: "192.0.2.254", ["192.0.2.2"]))
        #expect(Self.fate(of: "192.0.2.2", before, after) == .inDoubt)
        #expect(Self.fate(of: "192.0.2.7", before, after) == .untouched, "an address of another interface")
    }

    @Test func `what is known only until the kernel's state is read again changes nothing`() {
        var unsure = Self.way(2, ["198.51.100.2"])
        unsure.isCoherent = false
        #expect(Self.fate(of: "192.0.2.2", Self.way(1, ["192.0.2.2"]), unsure) == .untouched)
    }
}
