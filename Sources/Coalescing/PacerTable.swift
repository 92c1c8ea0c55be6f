// SPDX-License-Identifier: Apache-2.0

/// The recurring entries of a planner by their interval, and one of each interval that the others fall in step with.
///
/// The entries of an interval form a ring, whose links the table keeps by the entries' numbers. All operations cost
/// O(log k) for k different intervals, and a move of k entries of an array when an interval comes or goes.
struct PacerTable: Sendable {
    private struct Pace: Sendable {
        let interval: Duration
        /// The entry that has had this interval longest, or is next to it in the ring.
        var pacer: Int
        var count: Int
    }

    private struct Link: Sendable {
        var previous: Int
        var next: Int
    }

    /// How many paces are tried for one that an entry can ride on. Connections share the few intervals of their
    /// protocols and networks; where each has its own, the fastest ones decide how often the machine wakes.
    private static let tried = 16

    /// In ascending order of their intervals.
    private var paces: [Pace] = []
    private var links: [Link] = []

    /// The entry whose wakes one of `cadence` does best to join: it has the fastest interval of those at whose wakes
    /// the other can happen without any wake of its own. An entry of the same interval where there is none; `nil`
    /// where nothing is that fast.
    func pacer(for cadence: Cadence) -> (entry: Int, period: Duration)? {
        for pace in paces.prefix(Self.tried) {
            guard pace.interval <= cadence.interval else { break }
            if cadence.canRide(each: pace.interval) { return (pace.pacer, pace.interval) }
        }
        let index = position(of: cadence.interval)
        guard index < paces.count, paces[index].interval == cadence.interval else { return nil }
        return (paces[index].pacer, cadence.interval)
    }

    /// Notes that an entry has this interval.
    mutating func insert(_ entry: Int, _ interval: Duration) {
        while links.count <= entry { links.append(Link(previous: links.count, next: links.count)) }
        let index = position(of: interval)
        guard index < paces.count, paces[index].interval == interval else {
            links[entry] = Link(previous: entry, next: entry)
            return paces.insert(Pace(interval: interval, pacer: entry, count: 1), at: index)
        }
        let pacer = paces[index].pacer
        let last = links[pacer].previous
        links[entry] = Link(previous: last, next: pacer)
        links[last].next = entry
        links[pacer].previous = entry
        paces[index].count += 1
    }

    /// Forgets an entry that was inserted with this interval.
    mutating func remove(_ entry: Int, _ interval: Duration) {
        let index = position(of: interval)
        paces[index].count -= 1
        guard paces[index].count > 0 else {
            paces.remove(at: index)
            return
        }
        let link = links[entry]
        links[link.previous].next = link.next
        links[link.next].previous = link.previous
        if paces[index].pacer == entry { paces[index].pacer = link.next }
    }

    /// Where the pace of an interval is or would be.
    private func position(of interval: Duration) -> Int {
        var range = 0..<paces.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if paces[middle].interval < interval {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        return range.lowerBound
    }
}
