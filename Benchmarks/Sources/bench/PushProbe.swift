// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import DialtoneTestSupport
internal import Glibc

/// Push through both agents: from the POST of an app's server to the app's `Message`, beside a program that subscribes
/// to the same topic of the same server and is blocked in a read; and what the session agent costs while nothing comes.
enum PushProbe {
    struct Figures {
        /// From rest: the machine's agent watches the connection and the session agent sleeps.
        var asleep: Measurement
        /// While messages come, so that the session agent has the socket still.
        var awake: Measurement
        /// On a socket that was dialled for another path a moment ago.
        var roamed: Measurement
        /// `nil` where there is no Python with what the server needs.
        var idle: Idle
    }

    /// A time in which nothing came but the server's pings.
    struct Idle {
        /// Of all threads, in the window.
        var sessionSwitches, agentSwitches: Int
        /// The processor time that the session agent's threads had, in nanoseconds.
        var sessionTime: Int
        /// Pings of the server that the machine's agent answered.
        var answered: Int
        var memory: ProcessCost.Memory
    }

    /// How many apps are registered.
    static let apps = 5
    /// How long nothing happens: `DIALTONE_BENCH_WINDOW` seconds, by default two minutes.
    static let window = Duration.seconds(getenv("DIALTONE_BENCH_WINDOW").flatMap { Int(String(cString: $0)) } ?? 120)
    /// After this long the last message costs nothing more: a minute after it, the session agent saves once that
    /// everything before it has come (`NtfyMark.patience`).
    static let settling = Duration.seconds(75)
    /// How often the server pings. ntfy does so every 45 s.
    static let pings = getenv("DIALTONE_BENCH_PINGS").flatMap { Int(String(cString: $0)) } ?? 5
    /// Longer than the session agent keeps a socket on which nothing is said.
    private static let rest = Duration.milliseconds(1300)

    /// `nil` where there is no Python with what the server needs.
    static func measure(_ daemon: String) async throws -> Figures? {
        guard PyPI.python != nil else { return nil }
        return try await LabNetwork.with { lab in
            let stage = try await PushBench(daemon, in: lab)
            let reader = try await stage.subscribe()
            // Behind the reader, as the server serves its subscribers in their order.
            try await stage.redial()
            let (rare, often) = (
                Rounds(count: 60, warmUp: 3, pause: rest), Rounds(count: 300, pause: .milliseconds(30))
            )
            let asleep = try await stage.measure(rare, against: reader) { _ in try await stage.settle() }
            let awake = try await stage.measure(often, against: reader) { _ in }
            let moves = Rounds(count: 40, warmUp: 3, pause: .milliseconds(1))
            let roamed = try await stage.measure(moves, against: reader) { _ in try await stage.roam() }
            return Figures(asleep: asleep, awake: awake, roamed: roamed, idle: try await stage.beIdle(for: window))
        }
    }
}
