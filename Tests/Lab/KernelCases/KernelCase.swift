// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Reachability
import Testing

/// Where each case of docs/kernel-cases.md is played: the Lab's network, this library's engine on its host, and the
/// kernel's own word by `ip route get` to hold against it.
struct KernelCase {
    let lab: LabNetwork
    let engine: NetworkState

    var host: Namespace { lab.host }

    /// Builds the network, lets `prepare` alter it, and starts the engine.
    static func play(
        receiveBuffer: Int = KernelSockets.defaultReceiveBuffer,
        prepare: (LabNetwork) async throws -> Void = { _ in }, _ body: (KernelCase) async throws -> Void
    ) async throws {
        try await LabNetwork.with { lab in
            try await prepare(lab)
            try await body(KernelCase(lab: lab, engine: lab.engine(receiveBuffer: receiveBuffer)))
        }
    }

    /// Watches the path to a host. Returns when the present one is there, which is the kernel's, and the engine has
    /// nothing more to look at: a second look that is still due would find a change of which no message told.
    func watch(
        _ target: Target = .server(.v4), isSatisfied: Bool = true, _ location: SourceLocation = #_sourceLocation
    ) async throws -> PathRecorder {
        let paths = PathRecorder(target, by: engine)
        let path = try await paths.next("the present path") { _ in true }
        #expect((path.status == .satisfied) == isSatisfied, "\(path)", sourceLocation: location)
        try await expectAgreement(path, on: target, location)
        try await eventually("the engine to be at rest") { engine.isAtRest }
        return paths
    }

    /// Watches the path of the network as such.
    func watchNetwork(_ requirement: InterfaceRequirement = .any) -> PathRecorder {
        PathRecorder(network: requirement, by: engine)
    }

    /// The path to a host now.
    func path(to target: Target) async -> Path {
        await HostReachability(target, on: { engine }).path()
    }

    /// Makes a change that has to be reported, and holds that nothing was reported before it: whatever happened since
    /// the last report was no change to whoever watches.
    ///
    /// - Returns: by how many changes the generation went on since `path`, this one among them.
    @discardableResult
    func expectSilence(
        on paths: PathRecorder, since path: Path, _ location: SourceLocation = #_sourceLocation
    ) async throws -> UInt64 {
        let report: PathRecorder.Report
        if path.interface?.name == "wan0" {
            try await mark()
            report = try await paths.nextReport("the marker")
            #expect(report.changes == [.addresses], "reported before it: \(report)", sourceLocation: location)
        } else {
            // "No route" turns into "prohibited".
            for family in Family.allCases { try await host.ip("\(family.rawValue) route add prohibit default") }
            report = try await paths.nextReport("the prohibition")
            #expect(report.path.reason == .prohibited, "reported before it: \(report)", sourceLocation: location)
        }
        return report.path.generation - path.generation
    }

    /// Waits until everything that the kernel said so far has been read, on a path over the first uplink.
    @discardableResult
    func catchUp(_ paths: PathRecorder) async throws -> Path {
        try await mark()
        return try await paths.next("the marker") { $0.isCoherent && $0.isMarked }
    }

    /// What an evaluation asks the kernel for may be newer than what the engine has read; what it knows of addresses is
    /// not. And this is a single message.
    private func mark() async throws {
        try await host.ip("address change \(Uplink.wan0.prefix(.v4)) dev wan0 valid_lft forever preferred_lft 0")
    }

    /// Holds that a path is what the kernel would do with the packet: refused where it refuses, and else by the same
    /// interface, gateway and source.
    func expectAgreement(
        _ path: Path, on target: Target, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        switch try await host.kernelRoute(target.forIP) {
        case .refused(let words):
            #expect(path.status == .unsatisfied && path.interface == nil, "\(words): \(path)", sourceLocation: location)
        case .found(let route):
            #expect(path.interface?.name == route.device, sourceLocation: location)
            #expect(path.gateway == route.gateway.flatMap { IPAddress($0) }, sourceLocation: location)
            // One that was asked for is not repeated.
            let source = target.source ?? route.source.flatMap { IPAddress($0) }
            #expect(path.source == source, sourceLocation: location)
        }
    }
}

extension Path {
    /// Whether it was made after ``KernelCase/catchUp(_:)`` made its mark.
    var isMarked: Bool {
        interface?.addresses.contains { $0.address == IPAddress(Uplink.wan0.address(.v4)) && $0.isDeprecated } == true
    }
}

extension Target {
    /// The Lab's server.
    static func server(_ family: Family) -> Target {
        Target(.init(LabNetwork.serverAddress(family)), port: 1883)
    }

    /// This target with other properties.
    func with(_ change: (inout Target) -> Void) -> Target {
        var target = self
        change(&target)
        return target
    }

    /// The packet as `ip route get` takes it.
    fileprivate var forIP: String {
        var words = [host.description]
        if let source { words.append("from \(source)") }
        if let interface { words.append("oif \(interface)") }
        if let mark { words.append("mark \(mark)") }
        if let user { words.append("uid \(user)") }
        if let transport { words.append("ipproto \(transport.rawValue)") }
        if let port { words.append((transport == nil ? "ipproto tcp " : "") + "dport \(port)") }
        return words.joined(separator: " ")
    }
}

extension LabNetwork {
    /// The library's engine, as if its process ran on the host.
    func engine(receiveBuffer: Int = KernelSockets.defaultReceiveBuffer) async throws -> NetworkState {
        let sockets = try await host.run { try KernelSockets(receiveBuffer: receiveBuffer) }
        return await NetworkState(sockets)
    }

    /// Has neighbours of an uplink answer, or fail: by hand, so that it takes no time.
    func setNeighbours(_ addresses: [String], on uplink: Uplink, answering: Bool) async throws {
        try await host.ip(
            batch: addresses.flatMap { address in
                let entry = "neigh replace \(address) dev \(uplink.name)"
                // The kernel tells of a failure only where there was something to lose.
                let failure = answering ? [] : [entry + " nud failed \(Namespace.isKept)"]
                return [entry + " lladdr 02:00:00:00:00:01 nud reachable"] + failure
            })
    }
}
