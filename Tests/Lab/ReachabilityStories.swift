// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LabSupport
import Netlink
import NetworkPath
import Platform
import Reachability
import Synchronization
import Testing

/// The library on a real kernel: the verdict on the server's address as the Lab changes.
@Suite("The path to the server", .lab)
struct ReachabilityStories {
    @Test func `the present path comes first, then each change, and none after cancel`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            let paths = PathRecorder()
            let monitor = PathMonitor(.any, on: { engine })
            monitor.pathUpdateHandler = { paths.add($0, []) }
            monitor.start(queue: paths.queue)
            let first = try await paths.next("the present path") { _ in true }
            #expect(first.status == .satisfied)
            #expect(first.interface?.name == "wan0")
            #expect(first.gateway == IPAddress(Uplink.wan0.gateway(.v4)))
            #expect(first.supportsIPv4 && first.supportsIPv6)

            try await lab.preferDefaultRoute(via: .wan1)
            _ = try await paths.next("the other uplink") { $0.interface?.name == "wan1" }

            monitor.cancel()
            let count = paths.count
            try await lab.takeDown(.wan1)
            // Another observer of the same engine has seen the change: the cancelled one had its chance.
            let witness = PathRecorder()
            let other = PathMonitor(.any, on: { engine })
            other.pathUpdateHandler = { witness.add($0, []) }
            other.start(queue: paths.queue)
            _ = try await witness.next("the witness") { $0.interface?.name != "wan1" }
            #expect(paths.count == count)
        }
    }

    @Test func `an asynchronous sequence gives the present path and the next`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            let host = HostReachability(.server, on: { engine })
            var updates = host.updates.makeAsyncIterator()
            #expect(try #require(await updates.next()).path.status == .satisfied)
            try await lab.cut(.wan0)
            var path = try #require(await updates.next()).path
            // On the way there the path may have been seen in between.
            while path.status == .satisfied { path = try #require(await updates.next()).path }
            #expect(path.reason == .noCarrier)
        }
    }

    @Test func `a change is told with the names of what differs`() async throws {
        try await LabNetwork.with { lab in
            let paths = try await lab.watchServer()
            try await lab.addRefusingRoute(.prohibit, "203.0.113.0/24")
            let path = try await paths.next("the prohibition") { $0.status == .unsatisfied }
            #expect(path.reason == .prohibited)
            #expect(paths.changes.last == [.status, .reason, .interface, .addresses, .gateway, .source])
        }
    }

    @Test(arguments: [
        (RefusingRoute.unreachable, Path.Reason.unreachable), (.prohibit, .prohibited), (.blackhole, .blackhole),
        (.throw, .noRoute),
    ])
    func `a route that refuses is named`(kind: RefusingRoute, reason: Path.Reason) async throws {
        try await LabNetwork.with { lab in
            let paths = try await lab.watchServer()
            try await lab.addRefusingRoute(kind, "203.0.113.0/24")
            let path = try await paths.next("the refusal") { $0.status == .unsatisfied }
            #expect(path.reason == reason)
            try await lab.removeRefusingRoute(kind, "203.0.113.0/24")
            _ = try await paths.next("the way back") { $0.status == .satisfied }
        }
    }

    @Test func `policy rules count: by mark and by port, each for its own packets`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            try await lab.addRule(.v4, "fwmark 7 prohibit")
            try await lab.addRule(.v4, "ipproto tcp dport 5060 prohibit")
            #expect(await engine.reason { _ in } == nil)
            #expect(await engine.reason { $0.mark = 7 } == .prohibited)
            #expect(await engine.reason { $0.mark = 8 } == nil)
            #expect(await engine.reason { $0.port = 5060 } == .prohibited)
            #expect(await engine.reason { $0.port = 5061 } == nil)
        }
    }

    @Test(.anotherUser) func `policy rules count by user, each for that user's packets`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            try await lab.addRule(.v4, "uidrange 65534-65534 prohibit")
            #expect(await engine.reason { $0.user = 65_534 } == .prohibited)
            #expect(await engine.reason { $0.user = 0 } == nil)
            #expect(await engine.reason { _ in } == nil)
        }
    }

    @Test func `a rule that appears flips a verdict that stands`() async throws {
        try await LabNetwork.with { lab in
            let paths = try await lab.watchServer()
            try await lab.addRule(.v4, "to 203.0.113.0/24 blackhole")
            let path = try await paths.next("the rule") { $0.status == .unsatisfied }
            #expect(path.reason == .blackhole)
            try await lab.removeRule(.v4, "to 203.0.113.0/24 blackhole")
            _ = try await paths.next("the rule's end") { $0.status == .satisfied }
        }
    }

    @Test func `IPv4 routes that vanish in silence are noticed: with the last address, and with a next-hop object`()
        async throws
    {
        try await LabNetwork.with { lab in
            try await lab.removeDefaultRoute(via: .wan1)
            let paths = try await lab.watchServer()
            try await lab.removeAddress(Uplink.wan0.prefix(.v4), from: .wan0)
            _ = try await paths.next("the loss of the address") { $0.status == .unsatisfied }

            try await lab.addAddress(Uplink.wan0.prefix(.v4), to: .wan0)
            try await lab.host.ip(batch: [
                "nexthop add id 9 via \(Uplink.wan0.gateway(.v4)) dev wan0", "route add default nhid 9",
            ])
            _ = try await paths.next("a way by a next-hop object") { $0.status == .satisfied }
            try await lab.host.ip("nexthop delete id 9")
            let path = try await paths.next("the loss of the next-hop object") { $0.status == .unsatisfied }
            #expect(path.reason == .noRoute)
        }
    }

    @Test func `a source address that is lost takes its path with it`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            var target = Target.server
            target.source = IPAddress(Uplink.wan1.address(.v4))
            let paths = PathRecorder(keeping: HostReachability(target, on: { engine }))
            _ = try await paths.next("the present path") { $0.status == .satisfied }
            try await lab.removeAddress(Uplink.wan1.prefix(.v4), from: .wan1)
            let path = try await paths.next("the loss of the address") { $0.status == .unsatisfied }
            #expect(path.reason == .noAddress)
            try await lab.addAddress(Uplink.wan1.prefix(.v4), to: .wan1)
            _ = try await paths.next("the way back") { $0.status == .satisfied }
        }
    }

    @Test func `a gateway that does not answer is found out, and its return too`() async throws {
        try await LabNetwork.withThisProcessAsHost { lab in
            let paths = try await lab.watchServer()
            try await lab.drop(.gateway, on: .wan0)
            try await lab.host.ip("neigh flush dev wan0")
            // Somebody on the machine sends a packet; only then does the kernel ask for the gateway.
            await #expect(throws: (any Error).self) {
                try await lab.host.run { try TCPSocket.connected(to: LabNetwork.serverAddress(.v4), 9) }
            }
            let path = try await paths.next("the dead gateway") { $0.status == .unsatisfied }
            #expect(path.reason == .gatewayUnreachable)
            #expect(path.gateway == IPAddress(Uplink.wan0.gateway(.v4)))

            // Nobody sends anything now; the engine's own probe brings the gateway back.
            try await lab.restore(.wan0)
            _ = try await paths.next("the gateway's return") { $0.status == .satisfied }
        }
    }

    @Test func `an overrun of the socket's buffer is survived: the verdict is right afterwards`() async throws {
        try await LabNetwork.with { lab in
            // The smallest buffer there is: a burst of a few notices overruns it.
            let engine = try await lab.engine(receiveBuffer: 1)
            let paths = PathRecorder()
            let host = HostReachability(.server, on: { engine })
            host.setCallback(on: paths.queue) { paths.add($0, $1) }
            _ = try await paths.next("the present path") { $0.status == .satisfied }
            try await lab.host.ip(
                batch: (0..<500).map { "route add 198.18.\($0 / 250).\($0 % 250)/32 via \(Uplink.wan0.gateway(.v4))" }
                    + ["route add prohibit 203.0.113.0/24"])
            let path = try await paths.next("the right verdict") { $0.reason == .prohibited && $0.isCoherent }
            #expect(path.status == .unsatisfied)
        }
    }

    @Test func `a network without a default route that splits it in two halves is a network`() async throws {
        try await LabNetwork.with { lab in
            let engine = try await lab.engine()
            for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink) }
            let gateway = Uplink.wan0.gateway(.v4)
            try await lab.host.ip(batch: ["route add 0.0.0.0/1 via \(gateway)", "route add 128.0.0.0/1 via \(gateway)"])
            let paths = PathRecorder()
            let monitor = PathMonitor(.any, on: { engine })
            monitor.pathUpdateHandler = { paths.add($0, []) }
            monitor.start(queue: paths.queue)
            let path = try await paths.next("the halves") { $0.status == .satisfied }
            #expect(path.supportsIPv4 && !path.supportsIPv6)
        }
    }

    @Test func `an address that is still tentative is none`() async throws {
        try await LabNetwork.with { lab in
            try await lab.setDuplicateAddressDetection(true, on: .wan0)
            try await lab.removeDefaultRoute(via: .wan1, families: [.v6])
            let engine = try await lab.engine()
            let paths = PathRecorder()
            let host = HostReachability(Target(.init(LabNetwork.serverAddress(.v6)), port: 1883), on: { engine })
            host.setCallback(on: paths.queue) { paths.add($0, $1) }
            _ = try await paths.next("the present path") { $0.status == .satisfied }
            try await lab.takeDown(.wan0)
            _ = try await paths.next("the loss") { $0.status == .unsatisfied }
            try await lab.bringUp(.wan0)
            _ = try await paths.next("the return") { $0.status == .satisfied }
            // Between the two the route was back before the address was usable; never was `::1` taken for a source.
            #expect(paths.all.allSatisfy { $0.status == .unsatisfied || $0.source?.isLoopback == false })
        }
    }
}

extension Target {
    fileprivate static let server = Target(.init(LabNetwork.serverAddress(.v4)), port: 1883)
}

extension NetworkState {
    /// Why the server cannot be reached by packets that differ by `change` from the plain ones.
    fileprivate nonisolated func reason(_ change: (inout Target) -> Void) async -> Path.Reason? {
        var target = Target.server
        change(&target)
        return await HostReachability(target, on: { self }).path().reason
    }
}

extension LabNetwork {
    /// The library's engine, as if its process ran on the host.
    fileprivate func engine(receiveBuffer: Int = KernelSockets.defaultReceiveBuffer) async throws -> NetworkState {
        let sockets = try await host.run { try KernelSockets(receiveBuffer: receiveBuffer) }
        return await NetworkState(sockets)
    }

    /// Watches the path to the server's IPv4 address; returns when the present one is there, and satisfied.
    fileprivate func watchServer() async throws -> PathRecorder {
        let engine = try await engine()
        let paths = PathRecorder(keeping: HostReachability(.server, on: { engine }))
        _ = try await paths.next("the present path") { $0.status == .satisfied }
        return paths
    }
}

/// Writes down the paths that a callback is given.
private final class PathRecorder: Sendable {
    let queue = DispatchQueue(label: "test")
    private let signal = ChangeSignal()
    private let state = Mutex<(paths: [Path], changes: [[PathChange]], taken: Int)>(([], [], 0))
    private let host: HostReachability?

    init(keeping host: HostReachability? = nil) {
        self.host = host
        host?.setCallback(on: queue) { [weak self] in self?.add($0, $1) }
    }

    var count: Int { state.withLock { $0.paths.count } }
    var all: [Path] { state.withLock { $0.paths } }
    var changes: [[PathChange]] { state.withLock { $0.changes } }

    func add(_ path: Path, _ changes: [PathChange]) {
        state.withLock { state in
            state.paths.append(path)
            state.changes.append(changes)
        }
        signal.notify()
    }

    /// The next path that `matches`, after the one returned last.
    func next(_ awaited: String, where matches: (Path) -> Bool) async throws -> Path {
        try await signal.wait(for: awaited, describe: { self.all.map { "\($0)" }.joined(separator: "\n") }) {
            state.withLock { state in
                guard let index = state.paths.indices.dropFirst(state.taken).first(where: { matches(state.paths[$0]) })
                else { return nil }
                state.taken = index + 1
                return state.paths[index]
            }
        }
    }
}
