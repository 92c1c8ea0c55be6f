// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtonePlatform
import Testing

@testable import Reachability

/// In which order questions are evaluated that a change makes due.
@AgentQueue
@Suite struct DueQuestionsTests {
    /// What keeps an observation going.
    private var observations: [PathObservation] = []

    private mutating func questions(_ count: Int, of user: UInt32?) -> [WatchedQuestion] {
        (0..<count).map { number in
            let address = IPAddress(v4: 0xC000_0200 + UInt32(number))
            let watched = WatchedQuestion(.host(Target(.address(address), port: UInt16(user ?? 1))))
            let observation = PathObservation({ _, _ in }, detach: {})
            observations.append(observation)
            watched.add(observation, for: user, key: UInt64(number))
            return watched
        }
    }

    private func taken(_ due: inout DueQuestions) -> [UInt32?] {
        var users: [UInt32?] = []
        while let question = due.next() { users.append(question.user) }
        return users
    }

    @Test mutating func `a user with one does not wait for one with a thousand`() {
        var due = DueQuestions()
        due.add(questions(1000, of: 4001) + questions(1, of: 4002) + questions(2, of: nil))
        let users = taken(&due)
        #expect(users.count == 1003)
        #expect(Set(users.prefix(3)) == [4001, 4002, nil])
        #expect(users.prefix(5).count { $0 == nil } == 2)
        #expect(due.isEmpty)
    }

    @Test mutating func `one that is due already keeps its place and one that is dropped is not evaluated`() {
        var due = DueQuestions()
        let many = questions(4, of: 4001)
        due.add(many)
        due.add([many[3], many[2]])
        due.remove(many[1])
        #expect(due.contains(many[2]) && !due.contains(many[1]))
        var order: [ObjectIdentifier] = []
        while let question = due.next() { order.append(ObjectIdentifier(question)) }
        #expect(order == [many[0], many[2], many[3]].map(ObjectIdentifier.init))
        due.add([many[1]])
        #expect(due.next() === many[1])
    }

    @Test mutating func `what waits for those of now does not wait for those to come`() {
        var due = DueQuestions()
        #expect(due.isPast(due.newest))
        due.add(questions(2, of: 4001))
        let number = due.newest
        due.add(questions(2, of: 4001))
        #expect(!due.isPast(number))
        _ = due.next()
        #expect(!due.isPast(number))
        _ = due.next()
        #expect(due.isPast(number) && !due.isEmpty)
    }
}
