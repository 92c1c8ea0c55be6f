// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import Platform

/// What is shared with a user is closed on a thread of that user's.
@Suite(.timeLimit(.minutes(1))) struct ClosingThreadsTests {
    /// How a descriptor may be let go of.
    enum Way: CaseIterable {
        case close, endOfScope, completion, duplicate, endOfConnection, received
    }

    @Test(arguments: Way.allCases) func theQueueDoesNotWaitHoweverItIsLetGoOf(way: Way) async throws {
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

    @Test func whatWaitsCountsAsItsUsersAndHoldsUpNoOther() async throws {
        let (lingering, other) = (try LingeringSocket(), try WatchedDescriptor())
        OwnedDescriptor(lingering.inAnotherSocket(), sharedWith: 5100).close()
        for _ in 1..<ClosingThreads.mostOfUser {
            OwnedDescriptor(-1, sharedWith: 5100).close()
        }
        print("\(ClosingThreads.waiting(for: 5100)) wait")
        #expect(ClosingThreads.isFull(for: 5100) && !ClosingThreads.isFull(for: 5101))
        OwnedDescriptor(other.number, sharedWith: 5101).close()
        #expect(other.isClosed)
        lingering.hangUp()
        try await eventually("all closed") { ClosingThreads.waiting(for: 5100) == 0 }
    }

    @Test func aResetStaysOne() async throws {
        let (socket, other) = (try LingeringSocket(), try LingeringSocket())
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket.number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        OwnedDescriptor(socket.number, sharedWith: 5200).close()
        OwnedDescriptor(other.number, sharedWith: 5200).close()
        // Neither waits: of the other one, lingering is ended first.
        try await eventually("closed") { ClosingThreads.waiting(for: 5200) == 0 }
    }
}
