// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Testing

@testable import DialtoneTLS

@Suite struct SessionTests {
    let surroundings = Surroundings()

    private func open(_ version: TLSPolicy.Version = .v13) throws -> TestLink {
        var settings = TestServer.Settings()
        settings.versions = version.number...version.number
        let link = try surroundings.link(server: TestServer(surroundings.certificate, settings))
        link.run()
        try #require(link.client.state == .open)
        return link
    }

    // MARK: - Limits

    @Test(arguments: TLSPolicy.Version.allCases)
    func `a server that sends without end is held back`(version: TLSPolicy.Version) throws {
        let link = try open(version)
        for _ in 0..<20 { link.server.send([UInt8](repeating: 7, count: 16_384)) }
        link.run()
        // One record is decrypted, and the driver is told to leave the rest in the socket.
        #expect(link.client.unreadPlaintext == 16_384)
        #expect(!link.client.wantsInput)
        #expect(link.waiting.count > 18 * 16_384)
        var read = 0
        while link.client.unreadPlaintext > 0 {
            read += link.client.read(atMost: 10_000).count
            link.run()
        }
        #expect(read == 20 * 16_384)
        #expect(link.client.wantsInput)
    }

    @Test func `no more is decrypted than is asked for`() throws {
        let link = try open()
        link.server.send(Array("first".utf8))
        link.server.send(Array("second".utf8))
        link.run()
        #expect(link.client.unreadPlaintext == 5)
        #expect(link.client.read(atMost: 2) == Array("fi".utf8))
        #expect(link.client.unreadPlaintext == 3)
        #expect(link.client.read(atMost: 3) == Array("rst".utf8))
        #expect(link.client.unreadPlaintext == 6)
        #expect(link.client.readText() == "second")
    }

    @Test func `a client that sends without end is held back`() throws {
        let link = try open()
        let bytes = [UInt8](repeating: 9, count: 1 << 20)
        let taken = bytes.withUnsafeBytes { link.client.send($0) }
        #expect(taken < bytes.count)
        #expect(link.client.pendingOutput >= TLSSession.outputLimit)
        #expect(link.client.pendingOutput < TLSSession.outputLimit + 16_384 + 300)
        #expect(link.client.send("more") == 0)
        // With much to be sent, what the server sends is left in the socket as well.
        #expect(!link.client.wantsInput)
        link.run()
        #expect(link.server.received.count == taken)
        #expect(link.client.send("more") == 4)
    }

    @Test func `output may be taken bytewise`() throws {
        let link = try surroundings.link()
        while link.client.state == .handshaking {
            while link.client.pendingOutput > 0 {
                link.client.drain { bytes in
                    link.server.receive(Array(bytes.prefix(1)))
                    return 1
                }
            }
            #expect(link.carryDown())
        }
        link.client.drain { _ in 0 }
        link.run()
        #expect(link.client.state == .open)
    }

    @Test func `an idle session holds no bytes`() throws {
        let link = try open()
        link.server.send(Array("INVITE".utf8))
        link.run()
        _ = link.client.read()
        #expect(link.client.pendingOutput == 0)
        var wasOffered = false
        link.client.drain { _ in
            wasOffered = true
            return 0
        }
        #expect(!wasOffered)
    }

    // MARK: - The end

    @Test(arguments: TLSPolicy.Version.allCases)
    func `the server's end is told after what it sent`(version: TLSPolicy.Version) throws {
        let link = try open(version)
        link.server.send(Array("BYE".utf8))
        link.server.close()
        link.run()
        link.client.receiveEnd()
        #expect(link.client.state == .open)
        #expect(link.client.readText() == "BYE")
        #expect(link.client.state == .closed)
        #expect(!link.client.wantsInput)
    }

    @Test(arguments: TLSPolicy.Version.allCases)
    func `an end without its word is truncation`(version: TLSPolicy.Version) throws {
        let link = try open(version)
        link.server.send(Array("half a mess".utf8))
        link.run()
        link.client.receiveEnd()
        #expect(link.client.state == .open)
        #expect(link.client.readText() == "half a mess")
        #expect(link.client.state == .failed(.truncated))
        #expect(link.client.failure?.isPermanent == false)
    }

    @Test func `an end in the middle of a record is truncation`() throws {
        let link = try open()
        link.server.send([UInt8](repeating: 1, count: 100))
        let bytes = link.server.takeOutput()
        bytes.dropLast(10).withUnsafeBytes { link.client.receive($0) }
        #expect(link.client.state == .open)
        link.client.receiveEnd()
        #expect(link.client.state == .failed(.truncated))
    }

    @Test func `an end in the handshake is said to be one`() throws {
        let link = try surroundings.link()
        link.client.receiveEnd()
        #expect(link.client.state == .failed(.endedInHandshake))
    }

    @Test(arguments: TLSPolicy.Version.allCases)
    func `the client's end reaches the server`(version: TLSPolicy.Version) throws {
        let link = try open(version)
        #expect(link.client.send("BYE") == 3)
        link.client.close()
        link.client.close()
        link.run()
        #expect(link.server.received == Array("BYE".utf8))
        #expect(link.server.sawClose)
        #expect(link.server.error == nil)
    }

    @Test func `closing before the handshake is over says nothing`() throws {
        let link = try surroundings.link()
        _ = link.carryUp()
        link.client.close()
        #expect(link.client.pendingOutput == 0)
        #expect(link.client.state == .handshaking)
    }

    // MARK: - What comes in between

    @Test func `tickets and key updates are dealt with by a session that nobody reads`() throws {
        let link = try open()
        for _ in 0..<10 {
            link.server.sendTicket()
            link.server.updateKeys(requesting: true)
            link.run()
        }
        #expect(link.client.state == .open)
        #expect(link.client.unreadPlaintext == 0)
        #expect(link.client.send("after") == 5)
        link.run()
        link.server.send(Array("after too".utf8))
        link.run()
        #expect(link.server.received == Array("after".utf8))
        #expect(link.server.error == nil)
        #expect(link.client.readText() == "after too")
    }

    @Test func `a flood of key updates is answered within bounds`() throws {
        let link = try open()
        for _ in 0..<5000 { link.server.updateKeys(requesting: true) }
        // Nobody takes what the client says: as over a line that is full one way.
        while link.carryDown() {}
        #expect(link.client.pendingOutput < TLSSession.outputLimit + TLSSession.inputLimit + 300)
        link.run()
        #expect(link.client.state == .open)
        #expect(link.client.send("still here") == 10)
        link.run()
        #expect(link.server.received == Array("still here".utf8))
    }

    @Test func `negotiating anew is refused`() throws {
        let link = try open(.v12)
        let before = link.sent
        link.server.renegotiate()
        #expect(link.carryDown())
        // Not a new handshake, but the alert that says no; what a server makes of it is its own affair.
        #expect(link.client.state == .open)
        #expect(link.carryUp())
        #expect(link.sent - before < 100)
        #expect(link.server.error == "no renegotiation")
    }

    @Test func `an alert ends the session with its name`() throws {
        let link = try open(.v12)
        // A fatal alert of a server that crashed, behind the handshake's encryption.
        [UInt8]([21, 3, 3, 0, 2, 2, 80]).withUnsafeBytes { link.client.receive($0) }
        guard case .failed(.broken) = link.client.state else {
            Issue.record("an alert that nobody encrypted counts: \(link.client.state)")
            return
        }
        let early = try surroundings.link()
        [UInt8]([21, 3, 3, 0, 2, 2, 80]).withUnsafeBytes { early.client.receive($0) }
        #expect(early.client.state == .failed(.alert(TLSAlert(rawValue: 80))))
        #expect(early.client.failure?.description == "the server ended TLS: internal error")
    }

    @Test func `after a failure nothing is taken or said`() throws {
        let link = try open()
        [UInt8](repeating: 0x55, count: 64).withUnsafeBytes { link.client.receive($0) }
        guard case .failed(.broken) = link.client.state else {
            Issue.record("\(link.client.state)")
            return
        }
        #expect(!link.client.wantsInput)
        #expect(link.client.send("x") == 0)
        #expect(link.client.read().isEmpty)
        #expect(link.client.unreadPlaintext == 0)
        link.client.close()
        link.client.receiveEnd()
        guard case .failed(.broken) = link.client.state else {
            Issue.record("another failure took its place: \(link.client.state)")
            return
        }
        // The alert that tells the server.
        #expect(link.client.pendingOutput > 0)
    }

    // MARK: - Garbage

    @Test(arguments: ["HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "220 mail ready\r\n"])
    func `a server without TLS is said to be one`(answer: String) throws {
        let link = try surroundings.link()
        Array(answer.utf8).withUnsafeBytes { link.client.receive($0) }
        #expect(link.client.state == .failed(.notTLS))
    }

    @Test(arguments: seeds(20))
    func `no bytes bring it down`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let link = try surroundings.link()
            link.piece = { Int.random(in: 1...$0, using: &random) }
            // As far as chance has it, in order.
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                _ = link.carryUp()
                _ = link.carryDown()
            }
            while link.carryUp() {}
            var bytes = link.server.takeOutput()
            if link.client.state == .open {
                link.server.send((0..<200).map { UInt8($0) })
                bytes += link.server.takeOutput()
            }
            // Then broken: bits turned, bytes lost, or nothing but noise.
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes = (0..<300).map { _ in UInt8.random(in: 0...255, using: &random) }
            case 1: bytes.removeLast(min(bytes.count, Int.random(in: 1...200, using: &random)))
            default:
                for _ in 0..<Int.random(in: 1...8, using: &random) where !bytes.isEmpty {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] ^=
                        1 << UInt8.random(in: 0..<8, using: &random)
                }
            }
            var rest = bytes[...]
            while link.client.wantsInput, !rest.isEmpty {
                let count = Int.random(in: 1...min(rest.count, 900), using: &random)
                rest.prefix(count).withUnsafeBytes { link.client.receive($0) }
                rest = rest.dropFirst(count)
            }
            while !link.client.read(atMost: 50).isEmpty {}
            link.client.receiveEnd()
            while !link.client.read(atMost: 50).isEmpty {}
            guard case .failed = link.client.state else {
                Issue.record("it cannot have ended well: \(link.client.state)")
                return
            }
            #expect(link.client.pendingOutput < TLSSession.outputLimit)
        }
    }
}
