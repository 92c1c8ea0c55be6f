// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneVarlink

/// Descriptors on the socket: each with the message it was sent with, and none left open.
@Suite(.timeLimit(.minutes(3))) struct DescriptorTests {
    private static func weigh(_ place: Int?) -> String {
        let parameters = place.map { #","parameters":{"fileDescriptor":\#($0)}"# } ?? ""
        return #"{"method":"org.example.Luggage.Weigh"\#(parameters)}"#
    }

    private static let walk = #"{"method":"org.example.Luggage.Walk"}"#
    private static let keep = #"{"method":"org.example.Luggage.Keep"}"#
    private static let done = #"{"parameters":{}}"#

    @Test func `the method that asks gets the descriptor it names`() async throws {
        let test = await LuggageService()
        let client = try await test.client()
        client.send(Self.weigh(1), passing: [file("first").release(), file("second").release()])
        expect(await client.receive(), is: pong("second"))
    }

    @Test(arguments: [1, -1, 4096])
    func `a descriptor that is not there is a wrong parameter`(place: Int) async throws {
        let test = await LuggageService()
        let client = try await test.client()
        client.send(Self.weigh(place), passing: [file("first").release()])
        expect(
            await client.receive(),
            is: failure("org.varlink.service.InvalidParameter", #""parameter":"fileDescriptor""#))
        client.send(Self.weigh(0))
        expect(
            await client.receive(),
            is: failure("org.varlink.service.InvalidParameter", #""parameter":"fileDescriptor""#))
    }

    /// All is in the socket before the first read, and the kernel runs together what it may.
    @Test func `messages that run together keep their descriptors`() async throws {
        let test = await LuggageService()
        let (ours, theirs) = socketPair()
        let client = RawClient(OwnedDescriptor(theirs))
        client.send(Self.walk, Self.weigh(nil))
        client.send(Self.weigh(0), passing: [file("one").release()])
        client.send(Self.weigh(nil), Self.walk)
        client.send(Self.weigh(0), passing: [file("two").release()])
        client.send(Self.weigh(0), passing: [file("three").release()])
        client.send(Self.weigh(0))
        try await onQueue { try test.server.serve(OwnedDescriptor(ours)) }
        for answer in [
            Self.done, pong("none"), pong("one"), pong("none"), Self.done, pong("two"), pong("three"),
            failure("org.varlink.service.InvalidParameter", #""parameter":"fileDescriptor""#),
        ] { expect(await client.receive(), is: answer) }
        await onQueue { #expect(test.server.unaskedDescriptors == 0) }
    }

    /// However messages are cut into parts and run together, each finds its own descriptors.
    @Test func `any splitting leaves descriptors with their messages`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(state: seed)
        for _ in 0..<30 {
            let test = await LuggageService()
            let (ours, theirs) = socketPair()
            let client = RawClient(OwnedDescriptor(theirs))
            var expected: [String] = []
            /// Without descriptors, not sent yet.
            var waiting: [UInt8] = []
            for number in 0..<40 {
                let isLaden = Bool.random(using: &random)
                var bytes = Array(Self.weigh(isLaden ? 0 : nil).utf8) + [0]
                expected.append(isLaden ? "\(number)" : "none")
                if isLaden {
                    client.send(bytes: waiting)
                    waiting = []
                    let part = Int.random(in: 1...bytes.count, using: &random)
                    client.send(part: Array(bytes.prefix(part)), passing: [file("\(number)").release()])
                    bytes.removeFirst(part)
                }
                waiting += bytes
                let part = Int.random(in: 0...waiting.count, using: &random)
                client.send(bytes: Array(waiting.prefix(part)))
                waiting.removeFirst(part)
                if number == 10 { try await onQueue { try test.server.serve(OwnedDescriptor(ours)) } }
            }
            client.send(bytes: waiting)
            for text in expected {
                let answer = await client.receive()
                try #require(answer == pong(text), "seed \(seed)")
            }
        }
    }

    @Test func `a descriptor waits for the rest of its message`() async throws {
        let test = await LuggageService()
        let client = try await test.client()
        let bytes = Array(Self.weigh(0).utf8) + [0]
        client.send(part: Array(bytes.prefix(1)), passing: [file("patient").release()])
        for byte in bytes.dropFirst() { client.send(bytes: [byte]) }
        expect(await client.receive(), is: pong("patient"))
    }

    @Test func `descriptors on several parts of a message end the connection`() async throws {
        let test = await LuggageService()
        let client = try await test.client()
        let tracer = Tracer()
        client.send(part: [UInt8(ascii: "{")], passing: [tracer.passed])
        client.send(part: [UInt8(ascii: " ")], passing: [file("second").release()])
        expect(await client.receive(), is: nil)
        #expect(tracer.isClosed)
        await onQueue {
            guard case .violation(_, .descriptorsInPieces) = test.incidents.first else {
                Issue.record("\(test.incidents)")
                return
            }
        }
    }

    @Test(arguments: [walk, #"{"method":"org.example.Luggage.None"}"#])
    func `a thousand descriptors that nobody asked for are closed and counted`(call: String) async throws {
        let test = await LuggageService()
        let client = try await test.client()
        for _ in 0..<250 {
            let tracer = Tracer()
            client.send(call, passing: [tracer.passed, copy(tracer.passed), copy(tracer.passed), copy(tracer.passed)])
            expect(await client.receive()) { $0 != nil }
            #expect(tracer.isClosed)
        }
        await onQueue {
            #expect(test.server.unaskedDescriptors == 1000)
            #expect(test.incidents.count == 1)
            #expect(test.server.connectionCount == 1)
        }
    }

    /// Closing such a socket waits until its peer has taken everything, or for a thousand seconds.
    @Test func `a socket that lingers holds up nobody`() async throws {
        let test = await LuggageService()
        let client = try await test.client()
        let socket = try LingeringSocket()
        let queue = DispatchQueue(label: "sender")
        // The sender's own close does not wait: it is not the last one.
        queue.sync { client.send(Self.walk, passing: [socket.number]) }
        expect(await client.receive(), is: Self.done)
        socket.hangUp()
    }

    @Test func `what is no socket is closed as well`() async throws {
        var limits = VarlinkServer.Limits()
        limits.waitingDescriptorsPerUser = 1
        let test = await LuggageService(limits: limits)
        var ends: [CInt] = [-1, -1]
        try #require(pipe(&ends) == 0)
        let client = try await test.client()
        client.send(Self.walk, passing: [ends[1]])
        expect(await client.receive(), is: Self.done)
        let (reading, queue) = (ends[0], DispatchQueue(label: "reader"))
        let end = await withCheckedContinuation { continuation in
            queue.async {
                var byte: UInt8 = 0
                continuation.resume(returning: read(reading, &byte, 1))
            }
        }
        close(reading)
        #expect(end == 0)
        // It counts no longer.
        try await eventually("room for the next") {
            let next = try test.client()
            next.send(Self.weigh(0), passing: [file("next").release()])
            return await next.receive() == pong("next")
        }
    }

    @Test func `more descriptors than allowed end their connection and no other`() async throws {
        let test = await LuggageService()
        let other = try await test.client()
        let client = try await test.client()
        let tracer = Tracer()
        client.send(Self.weigh(0), passing: (0..<252).map { _ in copy(tracer.passed) } + [tracer.passed])
        expect(await client.receive(), is: nil)
        #expect(tracer.isClosed)
        other.send(Self.walk)
        expect(await other.receive(), is: Self.done)
        await onQueue {
            guard case .violation(_, .descriptorsTruncated) = test.incidents.first else {
                Issue.record("\(test.incidents)")
                return
            }
        }
    }

    @Test func `descriptors that wait are bounded for a user and not for ever`() async throws {
        var limits = VarlinkServer.Limits()
        limits.waitingDescriptorsPerUser = 2
        let test = await LuggageService(limits: limits)
        let tracer = Tracer()
        do {
            let holding = try await test.client()
            holding.send(part: [UInt8(ascii: "{")], passing: [tracer.passed, file("x").release()])
            // Another read: the first is through when an answer on another connection is there.
            let other = try await test.client()
            other.send(Self.walk)
            expect(await other.receive(), is: Self.done)
            #expect(tracer.isOpen)
            other.send(Self.weigh(0), passing: [file("no room").release()])
            expect(await other.receive(), is: nil)
        }
        try await eventually("gone") { test.server.connectionCount == 0 }
        #expect(tracer.isClosed)
        let next = try await test.client()
        next.send(Self.weigh(0), passing: [file("room").release()])
        expect(await next.receive(), is: pong("room"))
    }

    @Test func `descriptors of a call are closed when it is over`() async throws {
        let test = await LuggageService()
        let client = try await test.client()
        let answered = Tracer()
        client.send(Self.keep, passing: [answered.passed])
        try await eventually("called") { test.kept.count == 1 }
        #expect(answered.isOpen)
        await onQueue { test.kept[0].reply(.init()) }
        #expect(answered.isClosed)
        expect(await client.receive(), is: Self.done)
        let abandoned = Tracer()
        client.send(Self.keep, passing: [abandoned.passed])
        try await eventually("called again") { test.kept.count == 2 }
        client.closeNow()
        try await eventually("gone") { test.server.connectionCount == 0 }
        #expect(abandoned.isClosed)
    }

    @Test(arguments: [0, 200_000])
    func `a reply brings its descriptor with its first byte`(weight: Int) async throws {
        let test = await LuggageService()
        let client = try await test.client()
        let call = #"{"method":"org.example.Luggage.Fetch","parameters":{"text":"back","weight":\#(weight)}}"#
        client.send(Self.walk, call, Self.walk)
        expect(await client.receive(), is: Self.done)
        expect(await client.receive()?.hasPrefix(#"{"parameters":{"fileDescriptor":0,"#), is: true)
        let descriptors = client.takeDescriptors()
        #expect(descriptors.count == 1)
        for number in descriptors { #expect(contents(of: OwnedDescriptor(number)) == "back") }
        expect(await client.receive(), is: Self.done)
    }

    @Test func `a oneway call closes the descriptors of its answer`() async throws {
        let test = await LuggageService()
        let client = try await test.client()
        client.send(#"{"method":"org.example.Luggage.Fetch","parameters":{"text":"x"},"oneway":true}"#, Self.walk)
        expect(await client.receive(), is: Self.done)
        #expect(client.takeDescriptors() == [])
    }

    /// A socket that is full takes neither the bytes nor the descriptors; both stay with the channel.
    @Test(arguments: [true, false])
    func `what cannot be written keeps its descriptors`(isReadInTheEnd: Bool) async throws {
        let (ours, theirs) = socketPair()
        let client = RawClient(OwnedDescriptor(theirs))
        let tracer = Tracer()
        let passed = tracer.passed
        let channel = try await onQueue {
            let inbox = DescriptorInbox(limit: 1, allowance: DescriptorAllowance(limit: 1))
            let holder = ChannelHolder()
            holder.channel = Channel(OwnedDescriptor(ours), messageLimit: 1000, inbox: inbox) { [unowned holder] _ in
                try? holder.channel?.flush()
            }
            let filling = VarlinkMessage.reply(TestAPI.Ping.Reply(text: String(repeating: "x", count: 10_000)))
            while let channel = holder.channel, channel.isDrained { try channel.send(filling) }
            let descriptors = VarlinkDescriptors()
            _ = descriptors.append(OwnedDescriptor(passed))
            try holder.channel?.send(.reply(TestAPI.Ping.Reply(text: "last")), descriptors)
            try holder.channel?.resume()
            return holder
        }
        #expect(tracer.isOpen)
        if isReadInTheEnd {
            while let message = await client.receive(), message != pong("last") {}
            let received = client.takeDescriptors()
            #expect(received.count == 1)
            // Only the receiver's is open.
            #expect(tracer.isOpen)
            for number in received { close(number) }
            #expect(tracer.isClosed)
            await onQueue { channel.channel?.close() }
        } else {
            await onQueue { channel.channel?.close() }
            #expect(tracer.isClosed)
        }
    }

    @AgentQueue
    private final class ChannelHolder {
        var channel: Channel?
    }

    @Test func `a client passes descriptors and gets some`() async throws {
        let test = await LuggageService()
        let connection = try await test.connection()
        async let weighed = withCheckedContinuation { continuation in
            AgentQueue.async {
                let descriptors = VarlinkDescriptors()
                _ = descriptors.append(file("light"))
                let place = descriptors.append(file("heavy"))
                connection.callWithDescriptors(LuggageAPI.Weigh.self, .init(fileDescriptor: place), descriptors) {
                    continuation.resume(returning: $0.map(\.reply))
                }
            }
        }
        async let fetched: String = withCheckedContinuation { continuation in
            AgentQueue.async {
                connection.callWithDescriptors(LuggageAPI.Fetch.self, .init(text: "back")) {
                    continuation.resume(returning: Self.text(fetchedWith: $0))
                }
            }
        }
        expect(await weighed, is: .success(.init(text: "heavy")))
        expect(await fetched, is: "back")
        await onQueue { connection.close() }
    }

    @AgentQueue
    private static func text(
        fetchedWith result: Result<VarlinkAnswer<LuggageAPI.Fetch>, VarlinkCallError>
    ) -> String {
        guard case .success(let answer) = result,
            let descriptor = answer.descriptors.take(answer.reply.fileDescriptor)
        else { return "\(result)" }
        return contents(of: descriptor)
    }

    @Test func `a client that asks for no descriptors closes them`() async throws {
        let (ours, theirs) = socketPair()
        let service = RawClient(OwnedDescriptor(theirs))
        let connection = try await onQueue { try VarlinkConnection(OwnedDescriptor(ours)) }
        async let answer = withCheckedContinuation { continuation in
            AgentQueue.async {
                connection.call(LuggageAPI.Walk.self, .init()) { continuation.resume(returning: $0) }
            }
        }
        expect(await service.receive(), is: Self.walk.replacing("}", with: #","parameters":{}}"#))
        let tracer = Tracer()
        service.send(Self.done, passing: [tracer.passed])
        expect(await answer, is: .success(.init()))
        #expect(tracer.isClosed)
        await onQueue { connection.close() }
    }

    /// The kernel's own way, and the one before Linux 6.5.
    @Test func `the peers process can be opened`() async throws {
        let test = await LuggageService()
        let client = try await test.client()
        client.send(Self.keep)
        try await eventually("called") { test.kept.count == 1 }
        try await onQueue {
            for process in [
                try test.kept[0].openPeerProcess().release(),
                try test.kept[0].peer.openProcessByNumber().release(),
            ] {
                let info = try String(contentsOfFile: "/proc/self/fdinfo/\(process)", encoding: .utf8)
                #expect(info.split(separator: "\n").contains("Pid:\t\(getpid())"))
                #expect(fcntl(process, F_GETFD) == FD_CLOEXEC)
                close(process)
            }
        }
        client.closeNow()
        try await eventually("gone") { test.server.connectionCount == 0 }
        await #expect(throws: SystemError("asking who is connected", code: ENOTCONN)) {
            try await onQueue { try test.kept[0].openPeerProcess().release() }
        }
    }
}

/// Another descriptor of the same.
private func copy(_ descriptor: CInt) -> CInt { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
