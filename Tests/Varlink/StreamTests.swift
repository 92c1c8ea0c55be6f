// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneVarlink

@Suite(.timeLimit(.minutes(3))) struct StreamTests {
    private static let subscribe = call("Count", #","more":true"#)

    private static func number(_ number: Int, continues: Bool = true) -> String {
        #"{\#(continues ? #""continues":true,"# : "")"parameters":{"number":\#(number)}}"#
    }

    @Test func `a stream ends with its last message and the connection goes on`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(
            #"{"method":"org.example.Test.Count","parameters":{"to":20},"more":true}"#, ping("behind it"),
            #"{"method":"org.example.Test.Count","parameters":{"to":1},"more":true}"#)
        for number in 1...20 { expect(await client.receive(), is: Self.number(number, continues: number < 20)) }
        expect(await client.receive(), is: pong("behind it"))
        expect(await client.receive(), is: Self.number(1, continues: false))
        try await eventually("ended once") { test.counters.map(\.endings) == [1, 1] }
    }

    @Test func `a wake writes before it returns`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(Self.subscribe)
        try await eventually("subscribed") { test.counters.count == 1 }
        await onQueue {
            test.counters[0].available = 1
            var buffer = [UInt8](repeating: 0, count: 100)
            #expect(recv(client.number, &buffer, buffer.count, CInt(MSG_DONTWAIT | MSG_PEEK)) > 0)
        }
        expect(await client.receive(), is: Self.number(1))
    }

    @Test(arguments: [[], [ping("never"), "not even JSON"]])
    func `a hang up ends the stream also behind unread bytes`(unread: [String]) async throws {
        let test = await TestService()
        do {
            let client = try await test.client()
            client.send(Self.subscribe)
            try await eventually("subscribed") { test.counters.count == 1 }
            for message in unread { client.send(message) }
        }
        try await eventually("ended") { test.counters[0].endings == 1 && test.server.connectionCount == 0 }
        await onQueue {
            test.counters[0].available = 10
            #expect(test.counters[0].number == 0)
            #expect(test.pings == [])
        }
    }

    @Test func `a stream outlives the sending side of its client`() async throws {
        let test = await TestService()
        let client = try await test.client()
        client.send(Self.subscribe)
        shutdown(client.number, CInt(SHUT_WR))
        try await eventually("subscribed") { test.counters.count == 1 }
        await onQueue { test.counters[0].available = 1 }
        expect(await client.receive(), is: Self.number(1))
    }

    /// A subscriber that does not read is asked for what fits into its socket and no more; the others do not notice.
    @Test func `a subscriber that never reads holds up nobody and grows nothing`() async throws {
        let total = 20_000
        let test = await TestService()
        let stalled = try await test.client()
        let reading = try await test.client()
        for (count, client) in [stalled, reading].enumerated() {
            client.send(Self.subscribe)
            try await eventually("subscribed") { test.counters.count == count + 1 }
        }
        let reader = Task.detached { () -> Int? in
            for number in 1...total {
                guard await reading.receive() == Self.number(number) else { return number }
            }
            return nil
        }
        for burst in stride(from: 10, through: total, by: 10) {
            await onQueue { for counter in test.counters { counter.available = burst } }
        }
        expect(await reader.value, is: nil)
        let written = await onQueue { test.counters[0].number }
        // 64 KiB of socket buffer hold at most this many messages of 45 bytes, whatever the kernel adds to each.
        #expect(written < 1500)
        // Reading makes room, and the rest comes.
        for number in 1...total {
            guard await stalled.receive() == Self.number(number) else {
                Issue.record("number \(number) is not there")
                break
            }
        }
    }
}
