// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneVarlink

@Suite(.timeLimit(.minutes(3))) struct ServerTests {
    @Test(arguments: [
        "hello\0", "\0", "[]\0", "{}\0", "{\"method\":1}\0",
        "{\"method\":\"org.example.Test.Ping\",\"more\":\"yes\"}\0",
        "{\"method\":\"org.example.Test.Ping\",\"more\":true,\"oneway\":true}\0", "{\"method\":\"\u{fffd}\0",
    ])
    func `what is not varlink ends its connection and no other`(bytes: String) async throws {
        let test = await TestService()
        let other = try await test.client()
        let client = try await test.client()
        client.send(ping("before"))
        expect(await client.receive(), is: pong("before"))
        client.send(bytes: Array(bytes.utf8))
        expect(await client.receive(), is: nil)
        other.send(ping("after"))
        expect(await other.receive(), is: pong("after"))
        try await eventually("reported") { test.incidents.count == 1 && test.server.connectionCount == 1 }
    }

    @Test func `a message over the limit ends its connection before it is complete`() async throws {
        var limits = VarlinkServer.Limits()
        limits.messageBytes = 1000
        let test = await TestService(limits: limits)
        let client = try await test.client()
        client.send(bytes: Array(repeating: UInt8(ascii: " "), count: 1001))
        expect(await client.receive(), is: nil)
        try await eventually("reported") {
            if case .violation(_, .messageTooLong(limit: 1000)) = test.incidents.first { true } else { false }
        }
    }

    @Test func `a call may come byte by byte`() async throws {
        let test = await TestService()
        let client = try await test.client()
        for byte in Array(ping("slow").utf8) + [0] { client.send(bytes: [byte]) }
        expect(await client.receive(), is: pong("slow"))
    }

    @Test func `calls that run together are answered in order`() async throws {
        let test = await TestService()
        let client = try await test.client()
        let texts = (0..<300).map { "\($0)" }
        client.send(bytes: texts.flatMap { Array(ping($0).utf8) + [0] })
        for text in texts { expect(await client.receive(), is: pong(text)) }
    }

    @Test func `a call that is answered later holds those behind it`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(call("Later"), ping("second"))
        try await eventually("called") { test.exchanges.count == 1 }
        await onQueue {
            #expect(test.pings == [])
            test.exchanges.removeLast().reply(.init(text: "first"))
        }
        expect(await client.receive(), is: pong("first"))
        expect(await client.receive(), is: pong("second"))
    }

    @Test func `a call that is answered later is cancelled by the hang up`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(call("Later"), ping("never"))
        try await eventually("called") { test.exchanges.count == 1 }
        let cancelled = await onQueue {
            let cancelled = Flag()
            test.exchanges[0].onCancel = { cancelled.raise() }
            return cancelled
        }
        client.closeNow()
        try await eventually("cancelled and closed") { cancelled.count == 1 && test.server.connectionCount == 0 }
        await onQueue {
            test.exchanges[0].reply(.init(text: "to nobody"))
            #expect(cancelled.count == 1)
            #expect(test.pings == [])
        }
    }

    @Test func `a call that is forgotten ends its connection`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(call("Later"))
        try await eventually("called") { test.exchanges.count == 1 }
        await onQueue { test.exchanges = [] }
        expect(await client.receive(), is: nil)
    }

    @Test func `a handler that throws with the exchange in hand answers with its error`() async throws {
        let test = await TestService()
        await onQueue { test.laterThrows = true }
        let client = try await test.client()
        client.send(call("Later"), ping("next"))
        expect(await client.receive(), is: failure("org.example.Test.Refused", "\"uid\":\(getuid())"))
        expect(await client.receive(), is: pong("next"))
    }

    @Test func `a oneway call is never answered`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(
            ping("silent", #","oneway":true"#), call("Refuse", #","oneway":true"#), call("Nothing", #","oneway":true"#),
            call("Count", #","oneway":true"#), #"{"method":"nonsense","oneway":true}"#, ping("spoken"))
        expect(await client.receive(), is: pong("spoken"))
        await onQueue { #expect(test.pings == ["silent", "spoken"]) }
    }

    @Test func `oneway calls of a client that hung up are carried out`() async throws {
        let test = await TestService()
        let texts = (0..<100).map { "\($0)" }
        do {
            let client = try await test.client()
            client.send(bytes: texts.flatMap { Array(ping($0, #","oneway":true"#).utf8) + [0] })
        }
        try await eventually("carried out") { test.pings == texts && test.server.connectionCount == 0 }
    }

    @Test func `a client that closes its sending side gets its answers`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(call("Later"), ping("second"))
        shutdown(client.number, CInt(SHUT_WR))
        try await eventually("called") { test.exchanges.count == 1 }
        await onQueue { test.exchanges.removeLast().reply(.init(text: "first")) }
        expect(await client.receive(), is: pong("first"))
        expect(await client.receive(), is: pong("second"))
        expect(await client.receive(), is: nil)
    }

    @Test func `a client that vanishes in the middle of a message is forgotten`() async throws {
        let test = await TestService()
        do {
            let client = try await test.client()
            client.send(bytes: Array(ping("cut off").utf8))
            try await eventually("connected") { test.server.connectionCount == 1 }
        }
        try await eventually("gone") { test.server.connectionCount == 0 }
        await onQueue {
            #expect(test.pings == [])
            #expect(test.incidents == [])
        }
    }

    @Test(arguments: [
        (#"{"method":"org.example.Other.Ping"}"#, "InterfaceNotFound", #""interface":"org.example.Other""#),
        (call("Nothing"), "MethodNotFound", #""method":"org.example.Test.Nothing""#),
        (call("Missing"), "MethodNotImplemented", #""method":"org.example.Test.Missing""#),
        (ping("x", #","upgrade":true"#), "MethodNotImplemented", #""method":"org.example.Test.Ping""#),
        (call("Ping"), "InvalidParameter", #""parameter":"text""#),
        (#"{"method":"Ping"}"#, "InvalidParameter", #""parameter":"method""#),
        (#"{"method":""}"#, "InvalidParameter", #""parameter":"method""#),
        (call("Count"), "ExpectedMore", ""),
    ])
    func `a call that cannot be answered says why`(message: String, error: String, parameters: String) async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(message, ping("next"))
        expect(await client.receive(), is: failure("org.varlink.service.\(error)", parameters))
        expect(await client.receive(), is: pong("next"))
    }

    @Test func `a method without stream answers once also when asked for more`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(ping("once", #","more":true"#), ping("next"))
        expect(await client.receive(), is: pong("once"))
        expect(await client.receive(), is: pong("next"))
    }

    @Test func `answers that nobody reads stop the reading of calls`() async throws {
        let test = await TestService()
        let client = try await test.client()
        // A send that would block for this long counts as refused. A slow machine can only make it refuse earlier.
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(client.number, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout.size(ofValue: limit)))
        let message = Array(ping(String(repeating: "x", count: 10_000)).utf8) + [0]
        var sent = 0
        while sent < 16 << 20 {
            let count = client.send(bytes: message)
            guard count == message.count else { break }
            sent += count
        }
        #expect(sent < 4 << 20)
        let answered = await onQueue { test.pings.count }
        #expect(answered < 100)
        for _ in 0..<answered { expect(await client.receive()) { $0 != nil } }
    }

    /// Calls with bytes changed, dropped, doubled and cut: whatever becomes of their connections, the others stay.
    @Test func `no bytes bring the server down`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(state: seed)
        let test = await TestService()
        let other = try await test.client()
        let honest = [
            ping("x"), call("Refuse"), call("Later"), call("Count", #","more":true"#), ping("x", #","oneway":true"#),
            #"{"method":"org.varlink.service.GetInfo"}"#,
        ]
        for round in 0..<300 {
            let client = try await test.client()
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                var bytes = Array(honest.randomElement(using: &random).map { $0.utf8 + [0] } ?? [])
                for _ in 0..<Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
                    let index = Int.random(in: 0..<bytes.count, using: &random)
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                    case 1: bytes.remove(at: index)
                    case 2: bytes.insert(contentsOf: bytes[index...].prefix(20), at: index)
                    default: bytes.removeSubrange(index...)
                    }
                }
                client.send(bytes: bytes)
            }
            if round % 50 == 0 {
                other.send(ping("\(round)"))
                expect(await other.receive(), is: pong("\(round)"), "seed \(seed)")
            }
        }
        try await eventually("all but one gone, seed \(seed)") { test.server.connectionCount == 1 }
    }

    @Test func `no user gets more connections than allowed`() async throws {
        var limits = VarlinkServer.Limits()
        limits.connectionsPerUser = 2
        limits.privileged = []
        let test = await TestService(limits: limits)
        var clients = [try await test.client(), try await test.client()]
        let refused = try await test.client()
        expect(await refused.receive(), is: nil)
        clients.removeFirst()
        try await eventually("one left") { test.server.connectionCount == 1 }
        let next = try await test.client()
        next.send(ping("fits"))
        expect(await next.receive(), is: pong("fits"))
        await onQueue {
            let peer = VarlinkPeer(uid: getuid(), gid: getgid(), pid: getpid())
            #expect(test.incidents == [.tooManyConnectionsOfUser(peer)])
        }
    }

    @Test func `who has most gives way where nothing more is admitted`() async throws {
        let test = await TestService()
        await onQueue {
            test.server.admission = { [unowned server = test.server] peer throws(VarlinkFailure) in
                if server.connectionCount >= 3 { throw VarlinkFailure(TestAPI.Refused(uid: Int(peer.uid))) }
            }
        }
        let greedy = [try await test.client(of: 1), try await test.client(of: 1), try await test.client(of: 1)]
        let modest = try await test.client(of: 2)
        modest.send(ping("served"))
        expect(await modest.receive(), is: pong("served"))
        expect(await greedy[2].receive(), is: nil, "the newest")
        for (number, client) in greedy.prefix(2).enumerated() {
            client.send(ping("\(number)"))
            expect(await client.receive(), is: pong("\(number)"))
        }
        // Nobody has more than this one, who is told why, and of whom no more than some wait to be.
        var late: [RawClient] = []
        for _ in 0..<40 { late.append(try await test.client(of: 1)) }
        expect(await onQueue { test.server.connectionCount }, is: 3 + 16)
        expect(await late[0].receive(), is: nil)
        late[39].send(ping("x"))
        expect(await late[39].receive()?.hasPrefix(#"{"error":"org.example.Test.Refused""#), is: true)
    }

    @Test func `as many as it takes give way to somebody privileged`() async throws {
        var limits = VarlinkServer.Limits()
        limits.privileged = [7]
        let test = await TestService(limits: limits)
        var greedy: [RawClient] = []
        for _ in 0..<10 { greedy.append(try await test.client(of: 1)) }
        await onQueue {
            test.server.admission = { [unowned server = test.server] peer throws(VarlinkFailure) in
                if server.connectionCount >= 3 { throw VarlinkFailure(TestAPI.Refused(uid: Int(peer.uid))) }
            }
        }
        let root = try await test.client(of: 7)
        root.send(ping("served"))
        expect(await root.receive(), is: pong("served"))
        expect(await onQueue { test.server.connectionCount }, is: 3)
        greedy[0].send(ping("the oldest"))
        expect(await greedy[0].receive(), is: pong("the oldest"))
    }

    @Test func `users of one account share its connections`() async throws {
        var limits = VarlinkServer.Limits()
        limits.connectionsPerUser = 2
        let test = await TestService(limits: limits)
        await onQueue { test.server.account = { $0 > 100 ? 100 : $0 } }
        let served = [try await test.client(of: 101), try await test.client(of: 102)]
        let refused = try await test.client(of: 103)
        expect(await refused.receive(), is: nil)
        for client in served + [try await test.client(of: 1)] {
            client.send(ping("served"))
            expect(await client.receive(), is: pong("served"))
        }
    }

    @Test func `when users have taken all they can another user and root are served`() async throws {
        var limits = VarlinkServer.Limits()
        limits.connections = 40
        limits.privilegedConnections = 2
        let test = await TestService(limits: limits)
        var greedy: [RawClient] = []
        for round in 0..<100 { greedy.append(try await test.client(of: UInt32(1 + round % 3))) }
        try await eventually("refused") { test.server.connectionCount == 40 }
        // Twenty more, each of whom gets one of those of the user who has most.
        for user in Array(4...23) + [0, 0] as [UInt32] {
            let client = try await test.client(of: user)
            client.send(ping("\(user)"))
            expect(await client.receive(), is: pong("\(user)"))
            greedy.append(client)
        }
        // The oldest ones stand.
        for client in greedy[..<3] {
            client.send(ping("old"))
            expect(await client.receive(), is: pong("old"))
        }
        await onQueue {
            print("\(test.server.connectionCount) connections, \(test.incidents.count) incidents")
            #expect(test.server.connectionCount == 42)
        }
        let third = try await test.client(of: 0)
        expect(await third.receive(), is: nil, "root has no more than what is kept for it")
    }

    @Test func `a user with many connections is served beside the others and not before`() async throws {
        let greedy = 300
        var places: [Int] = []
        // The agent's thread may be late with the last one, and then many calls went before it in any order of serving.
        // Served in their order, one call of each greedy connection at least goes before it every time.
        while places.last.map({ $0 >= greedy }) ?? true, places.count < 10 {
            places.append(try await Self.placeOfAPoliteCall(behind: greedy))
        }
        expect(places) { $0.contains { $0 < greedy } }
    }

    /// How many calls are served before that of a user who comes last, behind connections with eight calls each.
    private static func placeOfAPoliteCall(behind greedy: Int) async throws -> Int {
        let test = await TestService()
        let (others, polite) = try await onQueue { () -> ([RawClient], RawClient) in
            var others: [RawClient] = []
            for _ in 0..<greedy {
                let client = try test.client(of: 1)
                client.send(bytes: (0..<8).flatMap { _ in Array(ping("greedy").utf8) + [0] })
                others.append(client)
            }
            let polite = try test.client(of: 2)
            polite.send(ping("polite"))
            return (others, polite)
        }
        expect(await polite.receive(), is: pong("polite"))
        let place = await onQueue { test.pings.firstIndex(of: "polite") }
        return withExtendedLifetime(others) { place ?? .max }
    }

    /// Not in the connection's next turn, before which a thousand others of the same user's make such an answer.
    @Test func `an answer that the socket does not take counts as held at once`() async throws {
        let test = await LuggageService()
        let (ours, theirs) = socketPair()
        defer { close(theirs) }
        try await onQueue { try test.server.serve(OwnedDescriptor(ours), for: VarlinkPeer(uid: 1, gid: 1, pid: 1)) }
        let call = #"{"method":"org.example.Luggage.Keep"}"# + "\0"
        #expect(write(theirs, call, call.utf8.count) == call.utf8.count)
        try await eventually("kept") { test.kept.count == 1 }
        let held = await onQueue {
            let reply = LuggageAPI.Weigh.Reply(text: String(repeating: "x", count: 1_000_000))
            test.kept[0].reply(.reply(reply, continues: false))
            return test.server.heldBytes(for: 1)
        }
        #expect(held > 500_000)
    }

    /// A user whose clients hold more than the share loses the greediest of them; nobody else notices.
    @Test func `what is held is bounded for a user`() async throws {
        var limits = VarlinkServer.Limits()
        limits.heldBytesPerUser = 100_000
        limits.messageBytes = 64_000
        let test = await TestService(limits: limits)
        let (small, other) = (try await test.client(of: 1), try await test.client(of: 2))
        small.send(bytes: [UInt8](repeating: UInt8(ascii: " "), count: 10_000))
        try await eventually("held") { test.server.heldBytes(for: 1) == 10_000 }
        let first = try await test.client(of: 1)
        first.send(bytes: [UInt8](repeating: UInt8(ascii: " "), count: 50_000))
        try await eventually("held") { test.server.heldBytes(for: 1) == 60_000 }
        let second = try await test.client(of: 1)
        second.send(bytes: [UInt8](repeating: UInt8(ascii: " "), count: 45_000))
        expect(await first.receive(), is: nil)
        for client in [small, second, other] {
            client.send(bytes: Array(ping("x").utf8) + [0])
            expect(await client.receive(), is: pong("x"))
        }
        try await eventually("nothing held") { test.server.heldBytes(for: 1) == 0 }
    }

    @Test func `a server that stops answering goes on with its streams alone`() async throws {
        let test = await TestService()
        let (idle, waiting) = (try await test.client(), try await test.client())
        let (streaming, ending) = (try await test.client(), try await test.client())
        waiting.send(call("Later"))
        streaming.send(call("Count", #","more":true"#))
        // More than the socket takes before somebody reads.
        let count = 5000
        ending.send(call("Count", #","more":true,"parameters":{"to":\#(count)}"#), ping("too late"))
        try await eventually("called") { test.counters.count == 2 && test.exchanges.count == 1 }
        await onQueue {
            idle.send(ping("too late"))
            test.server.stopAnswering()
            for counter in test.counters where counter.end == nil { counter.available = 1 }
        }
        expect(await idle.receive(), is: nil)
        expect(await waiting.receive(), is: nil)
        expect(await streaming.receive()?.contains(#""number":1"#), is: true)
        for number in 1...count { expect(await ending.receive()?.contains(#""number":\#(number)"#), is: true) }
        expect(await ending.receive(), is: nil)
        await onQueue { #expect(test.pings == []) }
    }

    @Test func `closing the server ends everything`() async throws {
        let test = await TestService()
        let idle = try await test.client()
        let streaming = try await test.client()
        streaming.send(call("Count", #","more":true"#))
        try await eventually("subscribed") { test.counters.count == 1 }
        await onQueue { test.server.close() }
        expect(await idle.receive(), is: nil)
        expect(await streaming.receive(), is: nil)
        await onQueue {
            #expect(test.counters[0].endings == 1)
            #expect(test.server.connectionCount == 0)
        }
    }
}

/// Something that happened, on the agent's queue.
@AgentQueue
final class Flag {
    private(set) var count = 0
    func raise() { count += 1 }
}
