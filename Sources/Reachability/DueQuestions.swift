// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
internal import DialtonePlatform

/// The questions that are to be evaluated anew, in the order in which that is done: of those that one change concerns,
/// each user's first, then each user's second, and so on.
@AgentQueue
struct DueQuestions {
    /// How many routes the kernel is asked for in one turn of the queue: 1.5 ms, at some 6 µs each. Nobody's questions
    /// keep other work waiting for longer; a user may watch a thousand names of sixteen addresses.
    static let lookupsPerTurn = 256

    private var line: Deque<(question: WatchedQuestion, number: UInt64)> = []
    /// Those in the line, with their numbers.
    private var numbers: [ObjectIdentifier: UInt64] = [:]
    /// The number of the one that came last.
    private(set) var newest: UInt64 = 0
    /// Whether a turn is coming for them.
    var isScheduled = false

    /// Whether there is none.
    var isEmpty: Bool { numbers.isEmpty }

    /// Whether none is left of those that had come when `number` was the newest.
    func isPast(_ number: UInt64) -> Bool { line.first.map { $0.number > number } ?? true }

    /// Whether a question is among them.
    func contains(_ question: WatchedQuestion) -> Bool { numbers[ObjectIdentifier(question)] != nil }

    /// Adds questions; those that are due already keep their place.
    mutating func add(_ questions: [WatchedQuestion]) {
        var byUser: [UInt32?: Deque<WatchedQuestion>] = [:]
        for question in questions where !contains(question) {
            byUser[question.user, default: []].append(question)
        }
        var users = Array(byUser.keys)
        while !users.isEmpty {
            users.removeAll { user in
                guard let question = byUser[user]?.popFirst() else { return true }
                newest += 1
                line.append((question, newest))
                numbers[ObjectIdentifier(question)] = newest
                return false
            }
        }
    }

    /// The next one, which is due no more.
    mutating func next() -> WatchedQuestion? {
        while let (question, number) = line.popFirst() {
            guard numbers[ObjectIdentifier(question)] == number else { continue }
            numbers[ObjectIdentifier(question)] = nil
            return question
        }
        return nil
    }

    /// Drops a question that nobody observes any more.
    mutating func remove(_ question: WatchedQuestion) {
        numbers[ObjectIdentifier(question)] = nil
        if numbers.isEmpty { line = [] }
    }

    /// Drops all.
    mutating func removeAll() {
        line = []
        numbers = [:]
    }
}
