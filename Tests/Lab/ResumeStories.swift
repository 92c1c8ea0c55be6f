// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import Dispatch
import Glibc
import Reachability
import Testing

@testable import DialtoneNetlink

/// What a resume from suspend leads to, on a real kernel whose machine sleeps by clocks of the test's own.
@Suite(.lab)
struct ResumeStories {
    @AgentQueue
    private final class Clocks {
        private var asleep = Duration.zero
        private(set) lazy var watch = ResumeWatch { [unowned self] in
            .init(before: .seconds(1000), boot: .seconds(1000) + asleep, after: .seconds(1000))
        }

        func suspend(for time: Duration) {
            _ = watch
            asleep += time
            watch.check()
        }
    }

    @Test func `kernel.md 21: what the kernel said unheard is found by reading everything again`() async throws {
        try await LabNetwork.with { lab in
            let clocks = Clocks()
            let (engine, notices) = try await Self.engine(on: lab.host, resumes: clocks.watch)
            let server = HostReachability(Target(.init(LabNetwork.serverAddress(.v4)), port: 1883), on: { engine })
            var updates = server.updates.makeAsyncIterator()
            expect(try #require(await updates.next()).path.interface?.name, is: "wan0")

            #expect(dropEverything(on: notices))
            try await lab.takeDown(.wan0)
            expect(await engine.snapshot.interfaces.values.first { $0.name == "wan0" }?.isUp, is: true)

            await clocks.suspend(for: .zero)
            expect(await engine.snapshot.interfaces.values.first { $0.name == "wan0" }?.isUp, is: true)
            await clocks.suspend(for: .seconds(8 * 3600))
            expect(await engine.snapshot.interfaces.values.first { $0.name == "wan0" }?.isUp, is: false)
            expect(try #require(await updates.next()).path.interface?.name, is: "wan1")
        }
    }

    private static func engine(
        on host: Namespace, resumes: ResumeWatch
    ) async throws -> (engine: NetworkState, notices: CInt) {
        let sockets = try await host.run { try KernelSockets() }
        let notices = sockets.notices.descriptor
        return (await NetworkState(sockets, resumes: resumes), notices)
    }
}

/// Has a socket receive nothing from now on (socket(7), `SO_ATTACH_FILTER`).
private func dropEverything(on socket: CInt) -> Bool {
    var instruction = sock_filter(code: UInt16(BPF_RET | BPF_K), jt: 0, jf: 0, k: 0)
    return withUnsafeMutablePointer(to: &instruction) { start in
        var program = sock_fprog(len: 1, filter: start)
        let size = socklen_t(MemoryLayout.size(ofValue: program))
        return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, size) == 0
    }
}
