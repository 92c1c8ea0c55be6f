// SPDX-License-Identifier: Apache-2.0

/// The candidate that was probably meant by `word`, if one is near enough: case aside, at most two slips away (a letter
/// too many, too few, another or swapped with its neighbour), and of short words at most one.
package func suggestion(for word: String, among candidates: [String]) -> String? {
    guard word.utf8.count <= longestSuggestible else { return nil }
    let near = candidates.map { (candidate: $0, slips: slips(from: word.lowercased(), to: $0.lowercased())) }
    guard let best = near.min(by: { $0.slips < $1.slips }) else { return nil }
    return best.slips <= (best.candidate.count > 5 ? 2 : 1) ? best.candidate : nil
}

/// More than any key or value that is suggested has, with all its slips. The comparison takes time in proportion to the
/// length, and a file may hold a key of a megabyte.
private let longestSuggestible = 64

/// The optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
private func slips(from first: String, to second: String) -> Int {
    let first = Array(first)
    let second = Array(second)
    var beforePrevious: [Int] = []
    var previous = Array(0...second.count)
    for row in first.indices {
        var current = [row + 1]
        for column in second.indices {
            let same = first[row] == second[column]
            var best = min(previous[column + 1] + 1, current[column] + 1, previous[column] + (same ? 0 : 1))
            if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
                best = min(best, beforePrevious[column - 1] + 1)
            }
            current.append(best)
        }
        (beforePrevious, previous) = (previous, current)
    }
    return previous[second.count]
}
