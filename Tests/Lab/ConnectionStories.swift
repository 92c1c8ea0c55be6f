// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Testing

/// What befalls a supervised connection, on a real kernel with a real broker.
@Suite("A connection's day", .lab)
struct ConnectionStories {
    @Test func `a link is taken down: the flow moves to the other uplink, and without a gap back again`() async throws {
        try await Story.tell { story in
            let before = story.now
            try await story.lab.takeDown(.wan0)
            _ = try await story.events.event("the old flow's end", after: before) {
                $0.previousState?.hasFlow == true && $0.connection.state == .connecting
            }
            try await story.isReady(from: .wan1, after: before)

            let moved = story.now
            try await story.lab.bringUp(.wan0)
            try await story.movesWithoutAGap(to: .wan0, after: moved)
        }
    }

    @Test func `both links are taken down: no packet, no timer, and dialled at once when one is back`() async throws {
        try await Story.tell { story in
            try await story.lab.removeDefaultRoute(via: .wan1)
            let before = story.now
            try await story.lab.takeDown(.wan0)
            let waiting = try await story.becomes(.waiting, after: before)
            #expect(waiting.previousState == .ready)
            #expect(waiting.connection.nextAttemptAt == nil)
            #expect(waiting.connection.localAddress == nil)

            let down = story.now
            try await story.lab.bringUp(.wan0)
            let dialled = try await story.becomes(.connecting, after: down)
            #expect(dialled.previousState == .waiting)
            try await story.isReady(from: .wan0, after: down)
        }
    }

    @Test func `the cable is cut and plugged in again`() async throws {
        try await Story.tell { story in
            let before = story.now
            try await story.lab.cut(.wan0)
            let waiting = try await story.becomes(.waiting, after: before)
            #expect(waiting.reason?.contains("no carrier") == true)
            let path = try await story.agent.client.path(to: .init(host: LabNetwork.serverAddress(.v4)))
            #expect(path.status == .unsatisfied)
            #expect(path.reason == .noCarrier)

            let cut = story.now
            try await story.lab.plug(.wan0)
            try await story.isReady(from: .wan0, after: cut)
        }
    }

    @Test func `the cable is cut where the kernel leaves dead links out: the other uplink takes over`() async throws {
        try await Story.tell { story in
            try await story.lab.host.sysctl([("net.ipv4.conf.all.ignore_routes_with_linkdown", "1")])
            let before = story.now
            try await story.lab.cut(.wan0)
            let redialled = try await story.events.event("a new flow", after: before) {
                $0.connection.state == .ready && $0.connection.interface == "wan1"
            }
            #expect(redialled.connection.epoch > 1)
        }
    }

    @Test func `the address changes: the old flow is closed at once, the new one has the new address`() async throws {
        try await Story.tell { story in
            let before = story.now
            try await story.lab.replaceAddress(.v4, on: .wan0, with: "192.0.2.77/24")
            let lost = try await story.events.event("the old flow's end", after: before) {
                $0.previousState?.hasFlow == true && $0.connection.state == .connecting
            }
            #expect(lost.reason == "source 192.0.2.2 is gone")
            try await story.isReadyFromTheNewAddress("192.0.2.77", after: before)
        }
    }

    /// What happens to a cable or an address and is over in a moment.
    enum Wiggle: CaseIterable {
        case cable, link, lease
    }

    @Test(arguments: Wiggle.allCases)
    func `what is back in a moment ends no flow`(wiggle: Wiggle) async throws {
        try await Story.tell({ $0.grace = nil }) { story in
            try await story.lab.removeDefaultRoute(via: .wan1)
            let flow = try await story.hostSees()
            let prefix = Uplink.wan0.prefix(.v4)
            for _ in 1...4 {
                let before = story.now
                switch wiggle {
                case .cable: try await story.lab.cut(.wan0)
                case .link: try await story.lab.takeDown(.wan0)
                case .lease: try await story.lab.removeAddress(prefix, from: .wan0)
                }
                try await story.becomes(.verifying, after: before)
                switch wiggle {
                case .cable: try await story.lab.plug(.wan0)
                case .link: try await story.lab.bringUp(.wan0)
                case .lease:
                    try await story.lab.addAddress(prefix, to: .wan0)
                    try await story.lab.addDefaultRoute(via: .wan0)
                }
                let proved = try await story.events.event("a proof", after: before) {
                    $0.reason == "the server is still there"
                }
                #expect(proved.connection.epoch == 1)
                expect(try await story.hostSees(), is: flow)
                expect(try await story.serverSees(), is: flow)
            }
        }
    }

    @Test func `what does not come back ends the flow when its grace is over`() async throws {
        try await Story.tell({ $0.grace = .milliseconds(300) }) { story in
            try await story.lab.removeDefaultRoute(via: .wan1)
            let before = story.now
            try await story.lab.cut(.wan0)
            let doubted = try await story.becomes(.verifying, after: before)
            #expect(doubted.reason == "no carrier to 203.0.113.10")
            let waiting = try await story.becomes(.waiting, after: before)
            #expect(waiting.previousState == .verifying)
            expect(try await story.hostSees(), is: [])
            let cut = story.now
            try await story.lab.plug(.wan0)
            try await story.isReady(from: .wan0, after: cut)
        }
    }

    @Test func `without its address a flow is kept no longer than until another one stands`() async throws {
        try await Story.tell({ $0.grace = .seconds(60) }) { story in
            let before = story.now
            try await story.lab.takeDown(.wan0)
            try await story.isReady(from: .wan1, after: before)
            let since = story.events.events.dropFirst(before).map(\.connection.state)
            #expect(since.allSatisfy { $0.hasFlow }, "\(since)")
        }
    }

    @Test func `the default route moves while the old uplink works: a new flow takes the old one's place`() async throws
    {
        try await Story.tell { story in
            let before = story.now
            try await story.lab.preferDefaultRoute(via: .wan1)
            try await story.movesWithoutAGap(to: .wan1, after: before)
        }
    }

    @Test func `the server restarts: back off, then ready again`() async throws {
        try await Story.tell { story in
            let before = story.now
            try await story.server.kill()
            let backingOff = try await story.becomes(.backingOff, after: before)
            #expect(backingOff.previousState == .ready)
            #expect(backingOff.connection.nextAttemptAt != nil)
            _ = try await story.events.event("a refusal", after: before) { $0.reason?.contains("refused") == true }

            try await story.server.restart()
            try await story.isReady(from: .wan0, after: before)
        }
    }

    @Test(arguments: [
        (RefusingRoute.unreachable, Path.Reason.unreachable), (.prohibit, .prohibited),
        (.blackhole, .blackhole), (.throw, .noRoute),
    ])
    func `the server becomes unreachable by a route`(kind: RefusingRoute, reason: Path.Reason) async throws {
        try await Story.tell { story in
            // `throw` ends the search in its table alone; here no other rule leads on but to the empty default table.
            let prefix = "\(LabNetwork.serverAddress(.v4))/32"
            let before = story.now
            try await story.lab.addRefusingRoute(kind, prefix)
            let waiting = try await story.becomes(.waiting, after: before)
            #expect(waiting.connection.nextAttemptAt == nil)
            let path = try await story.agent.client.path(to: .init(host: LabNetwork.serverAddress(.v4)))
            #expect(path.reason == reason)

            let refused = story.now
            try await story.lab.removeRefusingRoute(kind, prefix)
            let ready = try await story.becomes(.ready, after: refused)
            // The old flow's end could not be told while the route refused; the kernel repeats its FIN.
            expect(try await story.serverSees()) { $0.contains(ready.connection.localAddress ?? "") }
        }
    }

    @Test func `the line goes silent in the middle: found by the kernel's keepalive`() async throws {
        try await Story.tell(
            {
                $0.keepalive = .init(protocol: "tcp", interval: .seconds(1))
                $0.userTimeout = .seconds(2)
            },
            { story in
                let before = story.now
                try await story.lab.drop(.established, on: .wan0)
                let lost = try await story.events.event("the silence to be noticed", after: before) {
                    $0.previousState == .ready && $0.connection.state != .ready
                }
                #expect(lost.connection.state == .backingOff)
                // A middlebox that forgot old connections lets new ones pass.
                let ready = try await story.becomes(.ready, after: before)
                #expect(ready.connection.epoch > 1)
            })
    }
}

extension Story {
    /// As ``isReady(from:at:after:)`` for wan0, where the server may still hold the flow from the address that is gone:
    /// nothing the host could send from it would arrive.
    func isReadyFromTheNewAddress(_ address: String, after count: Int) async throws {
        let event = try await events.event("office to be ready from \(address)", after: count) {
            $0.connection.state == .ready && $0.connection.localAddress?.hasPrefix("\(address):") == true
        }
        expect(try await serverSees()) { $0.contains(event.connection.localAddress ?? "") }
    }
}
