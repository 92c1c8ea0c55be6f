// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform

/// What was told, in order, for a test that waits for the next word of it.
@AgentQueue
final class Inbox<Word: Sendable> {
    private let continuation: AsyncStream<Word>.Continuation
    private let words: AsyncStream<Word>

    init() {
        (words, continuation) = AsyncStream.makeStream(of: Word.self)
    }

    /// All words that came, for a failure to print.
    private(set) var all: [Word] = []

    func put(_ word: Word) {
        all.append(word)
        continuation.yield(word)
    }

    /// The next word; `nil` when the test's time is over.
    func next() async -> Word? {
        var iterator = words.makeAsyncIterator()
        return await iterator.next(isolation: AgentQueue.shared)
    }

    /// The next word that is as wanted; those before it are dropped.
    func next(where isWanted: (Word) -> Bool) async -> Word? {
        while let word = await next() {
            if isWanted(word) { return word }
        }
        return nil
    }
}
