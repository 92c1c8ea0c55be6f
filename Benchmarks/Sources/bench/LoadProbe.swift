// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// What a daemon costs that watches one host on a router: a million routes, of which ten thousand a second change. Runs
/// in a process and a network namespace of its own, like the probes of reaction times.
struct LoadProbe: ~Copyable {
    /// What changes.
    enum Churn: String, CaseIterable, Sendable {
        /// Routes that the watched host is not behind.
        case elsewhere
        /// The route to the watched host, and no other.
        case watched
    }

    /// What came of a churn.
    struct Figures: Sendable {
        /// From the last change to the moment at which the subscriber had the verdict that stayed.
        var settling: [Int64] = []
        /// How often it was not the right one within five seconds.
        var missed = 0
        /// Processor time of the daemon and of `ip monitor`, in thousandths of the time that the changes took.
        var share = 0
        var peerShare = 0
        /// Changes in a second, as they came to be.
        var rate = 0
        /// Resident memory of the daemon in KiB, with all routes there and before the first change, and after the last.
        var memory = (before: 0, after: 0)
    }

    /// The option by which this program is one.
    static let option = "--load"

    static let routes: UInt32 = 1_000_000
    private static let rounds = 10
    private static let roundLength = Duration.milliseconds(500)
    /// Of the million, those that change.
    private static let changing: UInt32 = 1000

    private let files: AgentFiles
    private let daemon: Child
    private let messages: Stamper

    /// Runs the probe in a process of its own.
    static func runApart(_ daemon: String, in machine: Namespace) async throws -> [Churn: Figures] {
        let all: [Churn: [Int]] = try await ProbeProcess.run(option, daemon, in: machine, atLeast: 6)
        return all.mapValues { numbers in
            Figures(
                settling: numbers.dropFirst(6).map(Int64.init), missed: numbers[0], share: numbers[1],
                peerShare: numbers[2], rate: numbers[3], memory: (numbers[4], numbers[5]))
        }
    }

    /// Runs the probe here and prints its figures for ``runApart(_:in:)``.
    static func runHere(_ arguments: [String]) throws {
        guard let daemon = arguments.first else { throw SystemError("reading the daemon's path", code: EINVAL) }
        let network = try ProbeNetwork.build()
        // 16.0.0.0/24, 16.0.1.0/24 and so on: a sixteenth of all there is.
        let table = try RouteChanger(bench_route((16, 0, 0, 0), length: 24, via: (192, 0, 2, 1), metric: 0))
        try table.addAll(routes)
        let probe = try start(daemon)
        let null = try opened("opening /dev/null", open("/dev/null", O_WRONLY | O_CLOEXEC))
        let peer = try Child(["ip", "monitor", "route"], output: null.number)
        for churn in Churn.allCases {
            let figures = try probe.measure(network.route, against: peer) { milliseconds in
                switch churn {
                case .elsewhere: try table.churn(over: changing, milliseconds: milliseconds)
                case .watched: try network.route.churn(over: 1, milliseconds: milliseconds)
                }
            }
            let numbers =
                [
                    figures.missed, figures.share, figures.peerShare, figures.rate, figures.memory.before,
                    figures.memory.after,
                ] + figures.settling.map(Int.init)
            Output.write(([churn.rawValue] + numbers.map(String.init)).joined(separator: " "))
        }
    }

    /// Starts the daemon and subscribes to the path to the host.
    private static func start(_ path: String) throws -> LoadProbe {
        let files = try AgentFiles()
        let daemon = try Child(files.command(path))
        let messages = try SubscriberProbe.subscribe(to: ProbeNetwork.host(1), at: files)
        usleep(1_000_000)
        return LoadProbe(files: files, daemon: daemon, messages: messages)
    }

    /// Churns round by round; the last change of each takes the route to the host away.
    private func measure(
        _ route: RouteChanger, against peer: borrowing Child, churn: (UInt32) throws -> Void
    ) throws -> Figures {
        var figures = Figures()
        figures.memory.before = try ProcessCost.memory(of: daemon.processID).resident
        var (own, others, whole) = (0, 0, Int64(0))
        for _ in 0..<Self.rounds {
            try route.change(add: true)
            _ = settled("satisfied")
            let used = (try ProcessCost.time(of: daemon.processID), try ProcessCost.time(of: peer.processID))
            let start = bench_now()
            try churn(UInt32(Self.roundLength.milliseconds))
            whole += bench_now() - start
            try route.change(add: false)
            // The kernel is done with it: on a busy machine its own work may be interrupted for a while.
            let last = bench_now()
            if let instant = settled("unsatisfied") {
                // Who was quicker than this program was not late.
                figures.settling.append(max(0, instant - last))
            } else {
                figures.missed += 1
            }
            own += try ProcessCost.time(of: daemon.processID) - used.0
            others += try ProcessCost.time(of: peer.processID) - used.1
        }
        // Thousandths; times are in ticks of ten milliseconds.
        let milliseconds = Int(whole / 1_000_000)
        (figures.share, figures.peerShare) = (own * 10_000 / milliseconds, others * 10_000 / milliseconds)
        figures.rate = Self.rounds * Int(Self.roundLength.milliseconds) * 10_000 / milliseconds
        figures.memory.after = try ProcessCost.memory(of: daemon.processID).resident
        return figures
    }

    /// Waits until the subscriber has a status and nothing new for a while; when it came, or `nil`.
    private func settled(_ status: String) -> Int64? {
        // Longer than until the second look that the kernel's early word of a removal makes necessary.
        let quiet = Duration.milliseconds(300).nanoseconds
        let deadline = bench_now() + Duration.seconds(5).nanoseconds
        let start = bench_now()
        while bench_now() < deadline {
            usleep(5000)
            let instant = messages[messages.count - 1]
            guard bench_now() > max(start, instant) + quiet else { continue }
            if bench_last_contains(messages.handle, "\"status\":\"\(status)\"") { return instant }
        }
        return nil
    }
}
