// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneExpectations
import DialtonePlatform
import DialtoneRelayMessages
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc
import Testing

/// dialtone-tls.
@Suite(.timeLimit(.minutes(2)))
struct RelayTests {
    private let fixture = RelayFixture()

    private func link(user: UInt32 = 1000) throws -> RelayLink { try RelayLink(fixture, user: user) }

    private func secured() throws -> RelayLink {
        let link = try link()
        #expect(link.run { link.isSecured && link.server.isOpen }, "\(link.words)")
        return link
    }

    private let burst = [UInt8](repeating: 0x55, count: 400_000)

    // MARK: - Both ways

    @Test func `plaintext goes both ways, and is counted`() throws {
        let link = try secured()
        link.server.send(Array("INVITE".utf8))
        #expect(link.run(reading: true) { link.read.count == 6 })
        #expect(link.write("200 OK".utf8) == 6)
        #expect(link.run { link.server.received == Array("200 OK".utf8) })
        #expect(link.run { (link.counted.taken, link.counted.sent) == (6, 6) }, "\(link.counted)")
        #expect(link.counted.delivered == 6)
    }

    @Test func `a client that does not read is given no more than there is room for, and all when it reads`() throws {
        let link = try secured()
        for _ in 0..<10 { link.server.send(burst) }
        var delivered: UInt64 = 0
        // Until it stands still, with the server waiting.
        #expect(
            link.run {
                defer { delivered = link.counted.delivered }
                return link.backlog > 2_000_000 && delivered > 60_000 && delivered == link.counted.delivered
            })
        #expect(delivered < 400_000, "\(delivered)")
        #expect(link.run(reading: true) { link.read.count == 4_000_000 }, "\(link.read.count)")
        #expect(link.read.allSatisfy { $0 == 0x55 })
        #expect(link.counted.delivered == 4_000_000)
    }

    @Test func `a server that does not read keeps its client waiting`() throws {
        let link = try secured()
        var written = 0
        for _ in 0..<10_000 {
            let count = link.write(burst[..<16_384])
            if count > 0 { written += count } else { sched_yield() }
            if written > 0, count <= 0, link.counted.taken == link.counted.sent, link.counted.sent > 100_000 { break }
        }
        #expect(written < 2_000_000, "\(written)")
        #expect(link.run { link.server.received.count == written }, "\(link.server.received.count) of \(written)")
    }

    // MARK: - What is done with

    @Test func `what a client has no room for is not done with before it reads`() throws {
        let link = try secured()
        #expect(link.run { link.isSettled }, "\(link.carried) were sent, \(link.counted)")
        // Until the pair is full, a record waits for room in it, and another one on the line.
        var total = 0
        var isFull: Bool { link.counted.delivered + 10_000 < total }
        while !isFull, total < 10_000_000 {
            link.server.send(Array(burst[..<10_000]))
            total += 10_000
            link.step()
            #expect(
                link.run { link.backlog == 0 && (link.isSettled || link.isLineEmpty || isFull) },
                "\(link.carried) were sent, \(link.counted)")
        }
        let counted = link.counted
        let rest = try #require(counted.settled).rest(of: link.carried)
        #expect(rest > 20_000, "\(total) in \(link.carried) were sent, \(counted)")
        #expect(link.run(reading: true) { link.read.count == total }, "\(link.read.count) of \(total)")
        #expect(link.run { link.isSettled }, "\(link.carried) were sent, \(link.counted)")
        link.server.close()
        #expect(link.run { link.words.last == .ended(nil) }, "\(link.words)")
        expect(link.counted.settled, is: .all)
    }

    @Test func `a part of a record is done with, and so is what has nothing for the client`() throws {
        let link = try secured()
        link.server.updateKeys(requesting: false)
        #expect(link.run { link.isSettled }, "\(link.carried) were sent, \(link.counted)")
        link.server.send(Array("INVITE".utf8))
        for count in [3, 4] {
            link.sendFromServer(count)
            let deadline = BootClock.now() + .seconds(30)
            while !link.isSettled, BootClock.now() < deadline { sched_yield() }
            #expect(link.isSettled, "\(link.carried) were sent, \(link.counted)")
        }
        #expect(link.counted.delivered == 0)
        #expect(link.run(reading: true) { link.read.count == 6 && link.isSettled }, "\(link.counted)")
    }

    // MARK: - Ends

    @Test func `the server's end is the client's, and what it wrote too late resets nothing`() throws {
        let link = try secured()
        link.server.send(Array("BYE".utf8))
        link.server.close()
        #expect(link.run { link.words.last == .ended(nil) }, "\(link.words)")
        while link.write("late".utf8) > 0 { sched_yield() }
        #expect(link.run(reading: true) { link.clientsEnd != nil })
        #expect((String(decoding: link.read, as: UTF8.self), link.clientsEnd) == ("BYE", 0))
    }

    @Test(arguments: [3, 400_000])
    func `a stream that is cut off ends in an error behind what came`(count: Int) throws {
        let link = try secured()
        link.server.send(Array(burst[..<count]))
        #expect(link.run(reading: count > 200_000) { link.backlog == 0 && link.counted.delivered > 0 })
        link.step()
        link.hangUp()
        #expect(
            link.run(reading: count > 200_000) { if case .ended = link.words.last { true } else { false } },
            "\(link.words)")
        link.markEnd()
        #expect(link.run(reading: true) { link.clientsEnd != nil })
        #expect(link.read.count == count)
        expect(link.clientsEnd, is: ECONNRESET)
    }

    @Test func `garbage is told as what it is, also behind the server's end`() throws {
        var link = try secured()
        var garbage = [UInt8](repeating: 0x41, count: 100)
        send(link.line, &garbage, garbage.count, CInt(MSG_NOSIGNAL))
        #expect(link.run { link.words.count == 2 })
        guard case .ended(.tls?) = link.words.last else {
            Issue.record("\(link.words)")
            return
        }
        link = try secured()
        link.server.close()
        link.step()
        send(link.line, &garbage, garbage.count, CInt(MSG_NOSIGNAL))
        #expect(link.run(reading: true) { link.clientsEnd == 0 }, "\(link.words)")
        expect(link.words.last, is: .ended(nil))
    }

    @Test func `a client that writes no more may read on`() throws {
        let link = try secured()
        #expect(link.write("last".utf8) == 4)
        shutdown(link.client, CInt(SHUT_WR))
        #expect(link.run { link.server.sawClose })
        #expect(link.server.received == Array("last".utf8))
        link.server.send(Array("200 OK".utf8))
        #expect(link.run(reading: true) { link.read.count == 6 }, "\(link.words)")
        // The end counts as one.
        #expect(link.counted.taken == 5)
    }

    /// Whoever ends it: the client, by closing its end, or the agent, which lets go of the flow.
    @Test(arguments: [false, true])
    func `what a client wrote before the end reaches the server, and then the end`(isAgents: Bool) throws {
        let link = try secured()
        // More than the line takes: some of it is still in the pair when its writer leaves.
        var written = 0
        while true {
            let count = link.write(burst[..<10_000])
            if count > 0 {
                written += count
            } else if link.counted.taken > link.counted.sent {
                break
            } else {
                sched_yield()
            }
        }
        if isAgents {
            link.finish()
            link.letGo()
        } else {
            link.closeClient()
        }
        #expect(link.run { link.hasLineEnded }, "\(link.words)")
        #expect(link.server.received.count == written)
        #expect(link.server.sawClose)
    }

    @Test func `what the agent ends is delivered to its end, whoever else lets go of it`() throws {
        let link = try secured()
        link.server.send(burst)
        #expect(link.run { link.counted.delivered > 0 && link.backlog == 0 })
        link.finish()
        link.letGo()
        #expect(link.run(reading: true) { link.clientsEnd != nil })
        #expect((link.read.count, link.clientsEnd) == (burst.count, 0))
        #expect(link.run { link.hasLineEnded && link.server.sawClose })
    }

    @Test func `a client that shuts both directions has ended the flow, as a socket's would`() throws {
        let link = try secured()
        shutdown(link.client, CInt(SHUT_RDWR))
        #expect(link.run { link.words.last == .ended(nil) }, "\(link.words)")
        #expect(link.run { link.hasLineEnded && link.server.sawClose })
    }

    @Test func `nothing is counted any more of a flow that the agent has let go of`() throws {
        let link = try secured()
        link.server.send(burst)
        #expect(link.run { link.counted.delivered > 0 && link.backlog == 0 })
        link.finish()
        link.letGo()
        // All that was heard before is over once the server hears the end.
        #expect(link.run { link.hasLineEnded })
        let counted = link.counted
        #expect(link.run(reading: true) { link.clientsEnd != nil })
        #expect(link.read.count == burst.count)
        expect(link.counted, is: counted)
    }

    // MARK: - What cannot be

    @Test func `a handshake that nobody waits for is ended`() throws {
        let link = try link()
        // The first flight has come.
        var entry = pollfd(fd: link.line, events: Int16(POLLIN), revents: 0)
        #expect(poll(&entry, 1, 30_000) == 1)
        link.letGo()
        #expect(link.run { link.hasLineEnded })
    }

    @Test func `what is no request, and what is no socket, is refused, and nobody else is disturbed`() throws {
        let other = try secured()
        let channel = MessageSocket(try fixture.relay.connect())
        try channel.send([0xff, 0xff, 0xff])
        var entry = pollfd(fd: channel.number, events: Int16(POLLIN), revents: 0)
        #expect(poll(&entry, 1, 30_000) == 1)
        guard case .end = channel.receive() else {
            Issue.record("an answer to garbage")
            return
        }
        let file = open("/dev/null", O_RDWR)
        defer { close(file) }
        let link = try RelayLink(fixture, socket: file)
        #expect(link.run { link.isForgotten })
        link.step()
        expect(link.words, is: [.failed(.socket(EPERM))])
        #expect(other.write("OPTIONS".utf8) == 7)
        #expect(other.run { other.server.received.count == 7 })
    }

    // MARK: - Turns

    @Test func `one user's thousand handshakes do not go ahead of another's one`() throws {
        let many = try (0..<1000).map { _ in try link(user: 4001) }
        let one = try link(user: 4002)
        #expect(one.run { one.isSecured })
        // None of the others' servers has said a word so far: what can be counted is who was begun with.
        let begun = many.filter { link in
            var count: CInt = 0
            return ioctl(link.line, UInt(FIONREAD), &count) == 0 && count > 0
        }.count
        print("\(begun) of \(many.count) handshakes had begun before another user's was over")
        #expect(begun < many.count)
    }

    // MARK: - Whatever comes

    /// What one does at random, in a stream of numbers that is known to the other end.
    @Test(arguments: seeds(20)) func `no byte is lost, doubled or out of order`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let link = try secured()
        var (down, up): ([UInt8], [UInt8]) = ([], [])
        var rest: ArraySlice<UInt8> = []
        for _ in 0..<400 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                let bytes = (0..<Int.random(in: 1...40_000, using: &random)).map {
                    UInt8(truncatingIfNeeded: $0 &* 7 &+ down.count)
                }
                link.server.send(bytes)
                down += bytes
            case 1:
                if rest.isEmpty {
                    let bytes = (0..<Int.random(in: 1...40_000, using: &random)).map {
                        UInt8(truncatingIfNeeded: $0 &* 5 &+ up.count)
                    }
                    up += bytes
                    rest = bytes[...]
                }
                let count = link.write(rest.prefix(Int.random(in: 1...20_000, using: &random)))
                if count > 0 { rest = rest.dropFirst(count) }
            case 2: link.readSome(Int.random(in: 1...70_000, using: &random))
            case 3: link.server.updateKeys(requesting: Bool.random(using: &random))
            case 4: sched_yield()
            default: link.step()
            }
        }
        #expect(
            link.run(reading: true) {
                let count = rest.isEmpty ? 0 : link.write(rest)
                if count > 0 { rest = rest.dropFirst(count) }
                return rest.isEmpty && link.read.count == down.count && link.server.received.count == up.count
            }, "\(link.read.count) of \(down.count) down, \(link.server.received.count) of \(up.count) up")
        #expect(link.read == down)
        #expect(link.server.received == up)
        #expect(link.run { link.counted.sent == UInt64(up.count) }, "\(link.counted)")
        #expect((link.counted.delivered, link.counted.taken) == (UInt64(down.count), UInt64(up.count)))
    }
}
