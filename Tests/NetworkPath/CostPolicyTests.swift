// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneNetworkPath

struct CostPolicyTests {
    @Test(arguments: InterfaceKind.allCases)
    func `cellular alone is expensive by itself`(kind: InterfaceKind) {
        let interface = CostPolicy().applied(to: Interface(index: 5, name: "x0", kind: kind))
        #expect(interface.isExpensive == (kind == .cellular))
        #expect(!interface.isConstrained)
    }

    @Test func `the user's word is by name`() {
        let policy = CostPolicy(expensive: ["wlan0"], constrained: ["eth0"])
        let wifi = policy.applied(to: Sample.wifi)
        #expect(wifi.isExpensive)
        #expect(!wifi.isConstrained)
        let wired = policy.applied(to: Sample.wired)
        #expect(!wired.isExpensive)
        #expect(wired.isConstrained)
    }

    @Test(arguments: [
        (Metering?.some(.yes), InterfaceKind.wifi, true, CostSource?.some(.networkManager)),
        (.yes, .cellular, true, .networkManager), (.no, .wifi, false, .networkManager),
        (.no, .cellular, false, .networkManager), (.guessedYes, .wifi, true, .guess),
        (.guessedYes, .cellular, true, .guess), (.guessedNo, .wifi, false, .guess),
        (.guessedNo, .cellular, true, .kind), (nil, .wifi, false, nil), (nil, .cellular, true, .kind),
    ])
    func `the manager's word stands above the kind and its guess of no below`(
        metering: Metering?, kind: InterfaceKind, isExpensive: Bool, source: CostSource?
    ) {
        let interface = Interface(index: 5, name: "x0", kind: kind)
        var policy = CostPolicy()
        policy.metered["x0"] = metering
        policy.metered["y0"] = .yes
        var priced = policy.applied(to: interface)
        #expect(priced.isExpensive == isExpensive && priced.costSource == source)
        for isUsersWord in [true, false] {
            (policy.expensive, policy.inexpensive) = isUsersWord ? (["x0"], []) : ([], ["x0"])
            priced = policy.applied(to: interface)
            #expect(priced.isExpensive == isUsersWord && priced.costSource == .configuration)
        }
    }

    @Test func `a word taken back is forgotten`() {
        let spared = CostPolicy(expensive: ["wlan0"], constrained: ["wlan0"]).applied(to: Sample.wifi)
        #expect(CostPolicy().applied(to: spared) == Sample.wifi)
    }

    @Test func `a new policy takes effect on all interfaces at once`() {
        var snapshot = Sample.network
        snapshot.costs = CostPolicy(expensive: ["eth0"])
        #expect(snapshot.interfaces[2]?.isExpensive == true)
        #expect(snapshot.generation == Sample.network.generation + 1)
        snapshot.costs = CostPolicy(expensive: ["eth0"])
        #expect(snapshot.generation == Sample.network.generation + 1, "the same policy is no change")
    }

    @Test func `a policy holds for interfaces that come later`() {
        var snapshot = Sample.network
        snapshot.costs = CostPolicy(expensive: ["wlan0"])
        _ = snapshot.apply(.interfacePresent(Sample.wifi))
        #expect(snapshot.interfaces[Sample.wifiIndex]?.isExpensive == true)
        #expect(snapshot.apply(.interfacePresent(Sample.wifi)).isEmpty, "its repetition is no change either")
    }

    @Test func `a renamed interface loses the cost of its old name`() {
        var snapshot = Sample.network
        snapshot.costs = CostPolicy(expensive: ["eth0"])
        var renamed = Sample.wired
        renamed.name = "lan0"
        _ = snapshot.apply(.interfacePresent(renamed))
        #expect(snapshot.interfaces[2]?.isExpensive == false)
    }
}
