// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneNetworkPath
import Testing

/// Paths over the socket.
@Suite struct PathTests {
    private func interface(_ kind: InterfaceKind, _ source: CostSource?) -> Interface {
        let addresses = [IPAddress(v4: 0xC000_0207), IPAddress(v6: 0x2001_0db8 << 96 | 7)]
        return Interface(
            index: 3, name: "wlan0", kind: kind, isUp: false, hasCarrier: true,
            addresses: [
                InterfaceAddress(addresses[0], prefixLength: 24, isDeprecated: true),
                InterfaceAddress(addresses[1], prefixLength: 64, isTentative: true),
            ], isExpensive: true, costSource: source, isConstrained: true)
    }

    private func path(_ status: NetworkAPI.Status, _ reason: NetworkAPI.Reason?) throws -> DialtoneNetworkPath.Path {
        DialtoneNetworkPath.Path(
            generation: 7, status: try #require(.init(rawValue: status.rawValue)),
            reason: try reason.map { try #require(.init(rawValue: $0.rawValue)) }, isCoherent: false,
            interface: interface(.wifi, nil), gateway: IPAddress(v4: 0xC000_0201), source: IPAddress(v4: 0xC000_0207),
            destination: IPAddress(v6: 0x2001_0db8 << 96 | 9), isDirect: true, isLocalAddress: false,
            supportsIPv4: true, supportsIPv6: false, supportsDNS: true, isExpensive: false, isConstrained: true)
    }

    @Test(arguments: NetworkAPI.Status.allCases, [nil] + NetworkAPI.Reason.allCases)
    func `they are on the other side what they were here`(
        status: NetworkAPI.Status, reason: NetworkAPI.Reason?
    ) throws {
        let path = try path(status, reason)
        #expect(DialtoneNetworkPath.Path(NetworkAPI.Path(path)) == path)
    }

    @Test(arguments: InterfaceKind.allCases, [nil] + CostSource.allCases)
    func `so are their interfaces`(kind: InterfaceKind, source: CostSource?) {
        let interface = interface(kind, source)
        #expect(DialtoneNetworkPath.Interface(NetworkAPI.Interface(interface)) == interface)
    }

    @Test func `the interface says what is looked at`() {
        #expect(Explanation.Step.Subject.allCases.map(\.rawValue) == NetworkAPI.Step.Subject.known.map(\.rawValue))
    }

    @Test func `what is no address is none`() throws {
        var wire = NetworkAPI.Path(try path(.satisfied, nil))
        (wire.generation, wire.gateway) = (-1, "here")
        wire.interface?.addresses = ["192.0.2.7", "x/24", "192.0.2.7/x"]
        let path = DialtoneNetworkPath.Path(wire)
        #expect(path.generation == 0 && path.gateway == nil && path.interface?.addresses == [])
    }
}
