// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform

/// Looks for a shorter history that ends in a disagreement too: leaves out half of it, then quarters, down to single
/// steps, then likewise the single changes of the steps that are left.
struct Shrinking {
    /// When to be content with what was found. A replay takes some tenths of a second.
    private static let patience = Duration.seconds(120)

    /// How long the product may be wrong in a replay, of which there are to be many.
    private static let replayPatience = Duration.milliseconds(500)

    let receiveBuffer: Int
    private let deadline = BootClock.now() + patience
    /// How many histories were tried.
    private(set) var replays = 0

    init(receiveBuffer: Int) {
        self.receiveBuffer = receiveBuffer
    }

    /// What is left of `history`, and the disagreement that it ends in; `nil` where the whole does not end in one when
    /// it is played once more, so that nothing shorter can be told from it.
    mutating func shrink(_ history: [Step]) async throws -> (history: [Step], disagreements: [Disagreement])? {
        guard var disagreements = try await replay(history) else { return nil }
        var shortest = try await shorten(history) { shrinking, steps in
            let found = try await shrinking.replay(steps)
            disagreements = found ?? disagreements
            return found != nil
        }
        // From the end, where what matters is.
        for place in shortest.indices.reversed() {
            let before = shortest
            let changes = try await shorten(shortest[place].changes) { shrinking, changes in
                var steps = before
                steps[place].changes = changes
                let found = try await shrinking.replay(steps)
                disagreements = found ?? disagreements
                return found != nil
            }
            shortest[place].changes = changes
        }
        return (shortest.filter { !$0.changes.isEmpty }, disagreements)
    }

    /// The shortest part of `list` that was found to fail still, in its order.
    private mutating func shorten<T>(
        _ list: [T], stillFails: (inout Shrinking, [T]) async throws -> Bool
    ) async throws -> [T] {
        var shortest = list
        var length = max(1, list.count / 2)
        while true {
            var start = 0
            while start < shortest.count, BootClock.now() < deadline {
                var shorter = shortest
                shorter.removeSubrange(start..<min(start + length, shorter.count))
                if try await stillFails(&self, shorter) { shortest = shorter } else { start += length }
            }
            guard length > 1, BootClock.now() < deadline else { return shortest }
            length = (length + 1) / 2
        }
    }

    /// Plays a history from the birth of a network; the disagreements at its end, if there are any.
    private mutating func replay(_ history: [Step]) async throws -> [Disagreement]? {
        replays += 1
        let episode = try await Episode.begin(receiveBuffer: receiveBuffer, patience: Self.replayPatience)
        for step in history.dropLast() { try await episode.replay(step) }
        let outcome = try await episode.perform(history.last ?? Step(changes: []))
        await episode.end()
        guard case .disagreed(let found) = outcome else { return nil }
        return found
    }
}
