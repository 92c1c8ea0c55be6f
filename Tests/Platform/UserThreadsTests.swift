// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneTestSupport
import Dispatch
import Glibc
import Testing

@testable import DialtonePlatform

/// What is shared with a user is closed, and asked, on a thread of that user's.
@Suite(.timeLimit(.minutes(1))) struct UserThreadsTests {
    /// How a descriptor may be let go of.
    enum Way: CaseIterable {
        case close, endOfScope, completion, duplicate, endOfConnection, received
    }

    @Test(arguments: Way.allCases) func `the queue does not wait however it is let go of`(way: Way) async throws {
        let lingering = try LingeringSocket()
        let number = lingering.inAnotherSocket()
        let user = UInt32(5000 + (Way.allCases.firstIndex(of: way) ?? 0))
        let goesOn = await lingering.lets {
            await onQueue {
                let descriptor = OwnedDescriptor(number, sharedWith: user)
                switch way {
                case .close: descriptor.close()
                case .endOfScope: _ = descriptor.number
                case .completion: descriptor.close {}
                case .duplicate:
                    if let copy = try? descriptor.duplicate() {
                        descriptor.close()
                        copy.close()
                    }
                case .endOfConnection: descriptor.endConnection()
                case .received:
                    var byte: UInt8 = 0
                    let count = withUnsafeMutableBytes(of: &byte) { descriptor.receiveBytes(into: $0) }
                    precondition(count == 1)
                }
            }
        }
        #expect(goesOn)
    }

    @Test func `what waits counts as its user's and holds up no other`() async throws {
        let (lingering, other) = (try LingeringSocket(), try WatchedDescriptor())
        OwnedDescriptor(lingering.inAnotherSocket(), sharedWith: 5100).close()
        for _ in 1..<UserThreads.mostOfUser {
            OwnedDescriptor(-1, sharedWith: 5100).close()
        }
        print("\(UserThreads.waiting(for: 5100)) wait")
        #expect(UserThreads.isFull(for: 5100) && !UserThreads.isFull(for: 5101))
        OwnedDescriptor(other.number, sharedWith: 5101).close()
        #expect(other.isClosed)
        lingering.hangUp()
        try await eventually("all closed") { UserThreads.waiting(for: 5100) == 0 }
    }

    @Test func `an answer is waited for a bit and once`() async throws {
        let open = DispatchSemaphore(value: 0)
        let asked = Lock(0)
        UserThreads.begin(for: 5300) { open.wait() }
        let answers = await onQueue {
            (0..<100).map { _ in
                UserThreads.answer(for: 5300, otherwise: -1) {
                    asked.withLock { $0 += 1 }; return 7
                }
            }
        }
        #expect(answers.allSatisfy { $0 == -1 })
        expect(await onQueue { UserThreads.answer(for: 5301, otherwise: -1) { 7 } }, is: 7, "another user's")
        open.signal()
        try await eventually("all done") { UserThreads.waiting(for: 5300) == 0 }
        #expect(asked.withLock { $0 } == 0, "what is not waited for any more is not begun")
    }

    @Test func `what is begun is done before the close that follows`() async throws {
        let (socket, open) = (try WatchedDescriptor(), DispatchSemaphore(value: 0))
        let number = socket.number
        let isOpen = Lock(false)
        UserThreads.begin(for: 5400) {
            open.wait()
            isOpen.withLock { $0 = fcntl(number, F_GETFD) >= 0 }
        }
        OwnedDescriptor(number, sharedWith: 5400).close()
        open.signal()
        try await eventually("all done") { UserThreads.waiting(for: 5400) == 0 }
        #expect(isOpen.withLock { $0 } && socket.isClosed)
    }

    @Test func `more users than threads are served one after the other`() async throws {
        let done = Lock(0)
        for user in 0..<1000 { UserThreads.begin(for: UInt32(7000 + user)) { done.withLock { $0 += 1 } } }
        try await eventually("each was served") { done.withLock { $0 } == 1000 }
    }

    @Test func `a reset stays one`() async throws {
        let (socket, other) = (try LingeringSocket(), try LingeringSocket())
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket.number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        OwnedDescriptor(socket.number, sharedWith: 5200).close()
        OwnedDescriptor(other.number, sharedWith: 5200).close()
        // Neither waits: of the other one, lingering is ended first.
        try await eventually("closed") { UserThreads.waiting(for: 5200) == 0 }
    }
}
