// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

@AgentQueue
@Suite(.timeLimit(.minutes(1)))
struct PollerTests {
    @Test func `a readable descriptor calls its handler`() async throws {
        let pair = try SocketPair()
        let ready = try await withRegistration(pair.near.number, .readable) { pair.send() }
        #expect(ready == .readable)
    }

    @Test func `a writable descriptor calls its handler`() async throws {
        let pair = try SocketPair()
        let ready = try await withRegistration(pair.near.number, [.readable, .writable]) {}
        #expect(ready == .writable)
    }

    @Test func `a peer's end of stream is told beside its last bytes`() async throws {
        let pair = try SocketPair()
        let ready = try await withRegistration(pair.near.number, [.readable, .peerClosed]) {
            pair.send()
            shutdown(pair.far.number, CInt(SHUT_WR))
        }
        #expect(ready == [.readable, .peerClosed])
    }

    @Test func `a hang up is told unasked`() async throws {
        let pair = try SocketPair()
        let ready = try await withRegistration(pair.near.number, []) {
            shutdown(pair.far.number, CInt(SHUT_RDWR))
        }
        #expect(ready == .hangUp)
    }

    @Test func `an update changes what is watched`() async throws {
        let pair = try SocketPair()
        let log = Log<Poller.Readiness>()
        let registration = try Poller.shared.register(pair.near.number, .readable) { log.append($0) }
        try await settle()
        #expect(log.entries.isEmpty, "a socket that can be written was watched for reading alone")
        try await inOneBatch { registration.update([.writable, .edgeTriggered]) }
        try await settle()
        registration.cancel()
        #expect(log.entries == [.writable])
    }

    @Test func `a level is reported as long as it lasts`() async throws {
        let pair = try SocketPair()
        let log = Log<Int>()
        var registration: Poller.Registration?
        try await answer("the readiness", of: Void.self) { done in
            registration = try Poller.shared.register(pair.near.number, .readable) { _ in
                log.append(1)
                guard log.entries.count == 3 else { return }
                pair.receive()
                done(())
            }
            pair.send()
        }
        try await settle()
        registration?.cancel()
        #expect(log.entries.count == 3)
    }

    @Test func `an edge is reported once`() async throws {
        let pair = try SocketPair()
        let log = Log<Int>()
        let registration = try Poller.shared.register(pair.near.number, [.readable, .edgeTriggered]) { _ in
            log.append(1)
        }
        try await inOneBatch { pair.send() }
        try await settle()
        #expect(log.entries.count == 1)
        try await inOneBatch { pair.send() }
        try await settle()
        registration.cancel()
        #expect(log.entries.count == 2)
    }

    /// More than one call of epoll_wait takes; none is forgotten and none called twice.
    @Test func `many ready descriptors are all served`() async throws {
        let count = 150
        let log = Log<Int>()
        let pairs = try (0..<count).map { _ in try SocketPair() }
        var registrations: [Poller.Registration] = []
        try await answer("the readiness", of: Void.self) { done in
            for (number, pair) in pairs.enumerated() {
                registrations.append(
                    try Poller.shared.register(pair.near.number, .readable) { _ in
                        pair.receive()
                        log.append(number)
                        if log.entries.count == count { done(()) }
                    })
            }
            for pair in pairs { pair.send() }
        }
        try await settle()
        for registration in registrations { registration.cancel() }
        #expect(log.entries.sorted() == Array(0..<count))
    }

    /// Each of two handlers, called for events of one batch, cancels the other.
    @Test func `a cancelled registration is not called even for an event that was fetched`() async throws {
        let pairs = [try SocketPair(), try SocketPair()]
        let log = Log<Int>()
        var registrations: [Poller.Registration] = []
        try await inOneBatch {
            for (number, pair) in pairs.enumerated() {
                pair.send()
                registrations.append(
                    try Poller.shared.register(pair.near.number, .readable) { _ in
                        log.append(number)
                        for registration in registrations { registration.cancel() }
                    })
            }
        }
        try await settle()
        #expect(log.entries.count == 1)
    }

    @Test func `a registration is not called for what it no longer watches`() async throws {
        let pairs = [try SocketPair(), try SocketPair()]
        let log = Log<Int>()
        var registrations: [Poller.Registration] = []
        try await inOneBatch {
            for (number, pair) in pairs.enumerated() {
                registrations.append(
                    try Poller.shared.register(pair.near.number, .writable) { _ in
                        log.append(number)
                        for registration in registrations { registration.update(.readable) }
                    })
            }
        }
        try await settle()
        for registration in registrations { registration.cancel() }
        #expect(log.entries.count == 1)
    }

    /// The kernel gives out the lowest free number: a flow that is closed and dialled again in one turn has it back.
    @Test func `a reused number does not get its former owners event`() async throws {
        let former = [try SocketPair(), try SocketPair()]
        let fresh = try SocketPair()
        let log = Log<String>()
        var registrations: [Poller.Registration] = []
        var successor: Poller.Registration?
        try await inOneBatch {
            for (number, pair) in former.enumerated() {
                pair.send()
                registrations.append(
                    try Poller.shared.register(pair.near.number, .readable) { _ in
                        log.append("former")
                        for registration in registrations { registration.cancel() }
                        let other = former[1 - number].near.number
                        // Closes the other's descriptor and puts one that is not ready in its place.
                        guard dup2(fresh.near.number, other) == other else { return }
                        successor = try? Poller.shared.register(other, .readable) { _ in log.append("successor") }
                    })
            }
        }
        try await settle()
        #expect(successor != nil)
        #expect(log.entries == ["former"])
        successor?.cancel()
    }

    @Test func `cancelling twice and updating afterwards is harmless`() async throws {
        let pair = try SocketPair()
        let registration = try Poller.shared.register(pair.near.number, .readable) { _ in }
        registration.cancel()
        registration.cancel()
        registration.update(.writable)
        let again = try Poller.shared.register(pair.near.number, .readable) { _ in }
        again.cancel()
    }

    @Test func `the kernel's refusal is thrown`() throws {
        let pair = try SocketPair()
        let registration = try Poller.shared.register(pair.near.number, .readable) { _ in }
        #expect(throws: SystemError("watching descriptor \(pair.near.number)", code: EEXIST)) {
            _ = try Poller.shared.register(pair.near.number, .readable) { _ in }
        }
        registration.cancel()
        let file = OwnedDescriptor(open("/proc/self/exe", O_RDONLY | O_CLOEXEC))
        #expect(throws: SystemError("watching descriptor \(file.number)", code: EPERM)) {
            _ = try Poller.shared.register(file.number, .readable) { _ in }
        }
    }

    @Test func `a cancelled registration is let go`() async throws {
        let pair = try SocketPair()
        weak var former: Poller.Registration?
        do {
            let registration = try Poller.shared.register(pair.near.number, .readable) { _ in }
            former = registration
            registration.cancel()
        }
        #expect(former == nil)
    }

    /// Does `trigger`, watches `descriptor`, and returns what the first call of the handler was told. In this order:
    /// bytes and the end of their stream are then one event and not two.
    private func withRegistration(
        _ descriptor: CInt, _ interest: Poller.Readiness, trigger: @AgentQueue () throws -> Void
    ) async throws -> Poller.Readiness {
        try trigger()
        var registration: Poller.Registration?
        defer { registration?.cancel() }
        return try await answer("the readiness") { ready in
            registration = try Poller.shared.register(descriptor, interest) { ready($0) }
        }
    }

    /// Runs `body` in a turn of the poller itself, which cannot fetch events meanwhile: what becomes ready in it comes
    /// in one batch.
    private func inOneBatch(_ body: @escaping @AgentQueue () throws -> Void) async throws {
        let kick = try SocketPair()
        var registration: Poller.Registration?
        defer { registration?.cancel() }
        let result = try await answer("the readiness", of: Result<Void, any Error>.self) { done in
            registration = try Poller.shared.register(kick.near.number, .readable) { _ in
                kick.receive()
                done(Result { try body() })
            }
            kick.send()
        }
        try result.get()
    }

    /// Returns once every event that stands now has been handled: the poller went round twice.
    private func settle() async throws {
        for _ in 0..<2 { try await inOneBatch {} }
    }
}
