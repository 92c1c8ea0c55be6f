// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Testing

/// What befalls a supervised connection, on a real kernel with a real broker.
@Suite(.lab)
struct ConnectionStories {
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
