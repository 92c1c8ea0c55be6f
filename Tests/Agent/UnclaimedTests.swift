// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneRelayMessages
import DialtoneTestSupport
import Glibc
import Logging
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// What an earlier process left in the service manager's store, and the state does not say whose it is.
@AgentQueue
@Suite struct UnclaimedTests {
    /// How many places there are.
    private static let places = 16

    private let manager = DescriptorStore.Manager(
        store: { (_, _) throws(SystemError) in }, remove: { (_) throws(SystemError) in })

    private func store(left: [UInt64: [CInt]]) -> DescriptorStore {
        DescriptorStore(
            manager, limit: Self.places + DescriptorStore.reserved, left: left,
            Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func holder(at number: CInt, _ events: CInt, _ what: String) async throws {
        try await eventually(what) {
            var entry = pollfd(fd: number, events: Int16(events), revents: 0)
            return poll(&entry, 1, 0) == 1
        }
    }

    /// Two TCP sockets that are connected with each other.
    private func line() throws -> (CInt, CInt) {
        let listener = OwnedDescriptor(socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        let ours = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let number = listener.number
        try #require(listen(number, 1) == 0)
        var (address, length) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
        let connected = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(number, $0, &length) == 0 && connect(ours, $0, length) == 0
            }
        }
        try #require(connected, "\(errno)")
        return (ours, accept(number, nil, nil))
    }

    private func read(_ number: CInt) -> String {
        var buffer = [UInt8](repeating: 0, count: 100)
        let count = recv(number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        return count < 0 ? "error \(errno)" : String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    @Test(arguments: [true, false])
    func `a client reads on from dialtone-tls, and what nobody has is gone`(hasClient: Bool) async throws {
        let (socket, server) = try line()
        let (stream, relaysStream) = socketPair()
        let (channel, relaysChannel) = try OwnedDescriptor.socketPair(keepingMessagesApart: true)
        let client = hasClient ? fcntl(stream, F_DUPFD_CLOEXEC, 0) : -1
        defer { for number in [server, relaysStream, relaysChannel, client] where number >= 0 { close(number) } }
        let store = store(left: [1: [socket, stream, channel]])
        expect(store.closeUnclaimed(), is: 1)
        // It is told that the flow is ended, and then that nobody wants to hear of it any more.
        try await holder(at: relaysChannel, POLLIN, "the word")
        expect(read(relaysChannel), is: "\u{1}")
        expect(read(relaysChannel), is: "")
        if hasClient {
            let count = send(relaysStream, "what it held", 12, CInt(MSG_NOSIGNAL))
            #expect(count == 12, "error \(errno)")
            expect(read(client), is: "what it held")
        } else {
            try await holder(at: relaysStream, POLLIN, "the end of the pair")
            expect(read(relaysStream), is: "")
        }
        // All that is left of the TCP socket here would be a copy of `dialtone-tls`'s.
        try await holder(at: server, POLLIN, "the end of the line")
        expect(read(server), is: "")
    }

    @Test func `a stream that was cut while nobody listened ends in an error`() async throws {
        let (stream, relaysStream) = socketPair()
        let (channel, relaysChannel) = try OwnedDescriptor.socketPair(keepingMessagesApart: true)
        let (socket, server) = try line()
        defer { for number in [server, relaysStream, relaysChannel] { close(number) } }
        try MessageSocket(OwnedDescriptor(dup(relaysChannel))).send(RelayWord.ended(.socket(ECONNRESET)).encoded)
        expect(store(left: [1: [socket, stream, channel]]).closeUnclaimed(), is: 1)
        try await holder(at: relaysStream, POLLIN, "what stands for the error")
        expect(read(relaysStream), is: "\u{0}")
    }

    @Test func `a client without TLS reads what has come, and then the end`() async throws {
        let (socket, server) = try line()
        let client = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        defer { for number in [server, client] { close(number) } }
        try #require(send(server, "BYE", 3, CInt(MSG_NOSIGNAL)) == 3)
        try await holder(at: client, POLLIN, "the word")
        expect(store(left: [1: [socket]]).closeUnclaimed(), is: 1)
        try await holder(at: server, POLLIN, "the end of the line")
        expect(read(client), is: "BYE")
        expect(read(client), is: "")
    }

    @Test func `a number that the manager did not hand on gives no place back`() throws {
        let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
        let store = store(left: [1: [file]])
        let part = store.part(of: .root)
        for number: UInt64 in 2...4 {
            expect(part.claim(number), is: [])
            part.discard(number)
        }
        let kept = (0..<2 * Self.places).count { _ in part.keep([0]) != nil }
        #expect(kept == Self.places - 1)
        part.discard(1)
        close(file)
        #expect(part.keep([0]) != nil)
        #expect(part.keep([0]) == nil)
    }
}
