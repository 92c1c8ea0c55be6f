// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import Glibc

/// Makes one event after the other, each from rest, and times the reaction to it.
struct Rounds {
    /// Events that are measured.
    var count: Int
    /// Events before those, whose figures are dropped: caches fill, threads start.
    var warmUp = 20
    /// How long everything rests before each event, at least. It is longer than the time in which the library's pacer
    /// of storms earns back what the event costs, and varies by a quarter, lest the events fall in step with a timer.
    var pause: Duration = .milliseconds(15)
    /// How many stamps make one reaction: the last of them counts.
    var stampsPerReaction = 1
    /// After this long an event counts as missed.
    var patience: Duration = .seconds(5)

    /// Runs the rounds.
    ///
    /// - Parameters:
    ///   - bare: notes the event itself.
    ///   - reaction: notes what is measured.
    ///   - prepare: is called before each round, which begins when it returns and the pause is over.
    ///   - event: makes the event, the one of this number.
    func measure(
        against bare: Stamper, _ reaction: some Stamps, prepare: (Int) async throws -> Void = { _ in },
        event: (Int) async throws -> Void
    ) async throws -> Measurement {
        var measurement = Measurement()
        for round in -warmUp..<count {
            try await prepare(round)
            rest(round)
            let before = (bare: bare.count, reaction: reaction.count)
            let start = bench_now()
            try await event(round)
            let last = before.reaction + stampsPerReaction
            let came = wait { bare.count > before.bare && reaction.count >= last }
            guard round >= 0 else { continue }
            if came {
                let seen = bare[before.bare]
                measurement.samples.append(Sample(bare: seen - start, difference: reaction[last - 1] - seen))
            } else {
                measurement.missed += 1
            }
        }
        return measurement
    }

    /// Blocks this thread on purpose: a task that sleeps would wake others meanwhile.
    private func rest(_ round: Int) {
        let spread = Int(pause.nanoseconds / 4)
        let offset = spread * (abs(round) % 8) / 8
        usleep(UInt32((Int(pause.nanoseconds) + offset) / 1000))
    }

    /// Looks after a while, then again and again; what happens meanwhile has its stamp.
    private func wait(until isThere: () -> Bool) -> Bool {
        let deadline = bench_now() + patience.nanoseconds
        while true {
            usleep(2000)
            if isThere() { return true }
            if bench_now() > deadline { return false }
        }
    }
}

extension Duration {
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
