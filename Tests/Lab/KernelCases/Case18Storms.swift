// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import Reachability
import Testing

/// The first event is evaluated at once, a storm is coalesced with a bound on staleness (EvaluationPacerTests has the
/// times, in virtual time). A verdict is delivered when it differs; generations count what lay between.
@Suite(.lab)
struct Case18Storms {
    @Test func `case 18: from A to B to A is no change to tell, and two in the count`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            let path = try #require(paths.all.first)
            try await it.host.ip(batch: ["route add prohibit 203.0.113.0/24", "route delete prohibit 203.0.113.0/24"])
            expect(try await it.catchUp(paths).generation - path.generation, is: 3)
        }
    }

    /// A timer that each event starts anew would never end here.
    @Test func `case 18: in a storm that does not end a change is told all the same`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            // Without a watch on it the storm would end at the index of destinations.
            let neighbour = try await it.watch(Target(.init("203.0.113.77")))
            let storm = try await it.host.spawn(["sh", "-c", Self.storm])
            _ = try await storm.line(containing: "storming")
            for kind in [RefusingRoute.prohibit, .blackhole, .unreachable] {
                try await it.lab.addRefusingRoute(kind, "203.0.113.0/24")
                try await paths.next("a change within the storm") { $0.status == .unsatisfied }
                try await it.lab.removeRefusingRoute(kind, "203.0.113.0/24")
                try await paths.next("the way back") { $0.status == .satisfied }
            }
            #expect(storm.isRunning)
            try await storm.killNow()
            #expect(neighbour.count > 1, "the storm concerned somebody")
        }
    }

    @Test func `case 18: a burst of changes is told in fewer words, and its end rightly`() async throws {
        try await KernelCase.play { it in
            let paths = try await it.watch()
            let flips = 500
            let (lookups, start) = (await it.engine.lookupCount, BootClock.now())
            try await it.host.ip(
                batch: (0..<flips).flatMap { _ in
                    ["route add prohibit 203.0.113.0/24", "route delete prohibit 203.0.113.0/24"]
                } + ["route add blackhole 203.0.113.0/24"])
            let path = try await paths.next("the end of the burst") { $0.reason == .blackhole }
            try await it.expectAgreement(path, on: .server(.v4))
            try await it.host.ip("route delete blackhole 203.0.113.0/24")
            let generations = try await it.catchUp(paths).generation - (paths.all.first?.generation ?? 0)
            // And more where the kernel was ahead of its notices, and a verdict changed between two of them.
            #expect(generations >= UInt64(2 * flips + 3))
            #expect(paths.count < flips, "a verdict that was replaced before it could be told is not told")
            // A hundred evaluations a second, each with a second look at the most; what else the network needs.
            let turns = EvaluationPacer.burst + Int((BootClock.now() - start) / EvaluationPacer.refill)
            expect(await it.engine.lookupCount - lookups) { $0 <= 2 * turns + 20 }
        }
    }

    /// To be woken for each costs ten times what it takes to read one more. The first are read at once, whoever they
    /// concern; then there is a pause between two reads, and nobody is asked about.
    @Test func `case 18: the notices of a storm are read a few times, and those that concern nobody cost no lookup`()
        async throws
    {
        try await KernelCase.play { it in
            let recorder = EngineRecorder(it.engine)
            try await recorder.watch([.address("203.0.113.1"), .address("203.0.113.2")])
            try await recorder.rest()
            let (reads, lookups, start) = (await it.engine.readCount, await it.engine.lookupCount, BootClock.now())
            let changes = 5000
            try await it.host.ip(
                batch: (0..<changes).map { number in
                    let command = number.isMultiple(of: 2) ? "add" : "delete"
                    return "route \(command) 198.18.0.\(number / 2 % 250)/32 via \(Uplink.wan0.gateway(.v4))"
                })
            try await it.lab.addRefusingRoute(.prohibit, "203.0.113.1/32")
            try await recorder.path(to: .address("203.0.113.1"), "the sign") { $0.reason == .prohibited }
            let pauses = Int((BootClock.now() - start) / KernelMonitor.readPause)
            // A turn that takes all that it may is followed by the next without a pause.
            let full = changes / KernelMonitor.datagramsPerTurn
            // Where the changes come in a trickle, each pause ends with a look at an empty queue, and leaves room for
            // one read at once and for the one that finds the room used up.
            let most = KernelMonitor.readsAtOnce + 3 * pauses + full + 2
            expect(await it.engine.readCount - reads) { $0 <= most }
            expect(await it.engine.lookupCount, is: lookups + 1)
        }
    }

    /// Each flips the verdict on a neighbour of the server, for as long as the shell runs: killed, it leaves the pipe's
    /// two ends, which then end by themselves.
    private static let storm = """
        echo storming
        while kill -0 $$; do
            echo route add prohibit 203.0.113.77/32
            echo route delete prohibit 203.0.113.77/32
        done | ip -batch -
        """
}
