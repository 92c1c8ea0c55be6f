// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// Whether something gets through where the kernel's route leads: when a dial also tries another uplink, and how long
/// it waits with the next test of that route.
struct Silence {
    /// A way over which nothing got through.
    private struct SilentWay {
        let interface: Int
        let gateway: IPAddress?
        let source: IPAddress?
        /// How often in a row.
        var times = 1

        /// The way of `path`; `nil` where it is not known by which interface that leads.
        init?(_ path: Path?) {
            guard let path, let interface = path.interface else { return nil }
            self.interface = interface.index
            (gateway, source) = (path.gateway, path.source)
        }

        /// Whether `path` leads this way.
        func isWay(of path: Path) -> Bool {
            path.interface?.index == interface && path.gateway == gateway && path.source == source
        }
    }

    /// How long a flow uses another uplink before a dial tests the kernel's route: 30 to 60 s, twice as long after each
    /// failure, half an hour at most. A test is a few packets.
    private static let trials = BackoffPolicy(
        base: .seconds(60), multiplier: 2, ceiling: .seconds(1800), jitter: .half)

    /// How long a flow must last over a silent way before that way counts as good again: twice the longest pause
    /// between two tests.
    private static let probation = trials.ceiling * 2

    /// The way over which nothing got through while another uplink's did.
    private var way: Boxed<SilentWay>?
    /// Whether the last dial or flow over the way that the kernel chooses fell silent.
    private var isFresh = false

    // MARK: - What happens

    /// A dial or a flow over the kernel's way fell silent.
    mutating func fell() { isFresh = true }

    /// A server answered, or another way is to be tried.
    mutating func ended() { isFresh = false }

    /// A flow over another uplink stands: `dial` made it, and `path` is the kernel's way.
    mutating func note(_ dial: Dial, over path: Path?, at now: Duration) {
        guard let path, var next = SilentWay(path), dial.isSilent(for: Race.attemptDelay, at: now) else { return }
        if let before = way?.value, before.isWay(of: path) {
            // One that is slow once more is tried no later for that.
            next.times = before.times + (isFresh || dial.isSilent(for: Dial.silencePatience, at: now) ? 1 : 0)
        }
        way = .value(next)
    }

    /// A flow over the kernel's way stood for so long. One that stood for long shows that its way is none to be
    /// avoided.
    mutating func flowLasted(_ age: Duration) { if age >= Self.probation { way = nil } }

    // MARK: - What follows

    /// How long a dial over `path` waits before it also tries another uplink; `nil` if it tries none.
    func patience(with path: Path, under policy: ConnectionPolicy) -> Duration? {
        // A tunnel hides its traffic from other networks, and a mark is the user's order.
        guard policy.triesOtherUplinks, policy.mark == nil, path.status == .satisfied, !path.isLocalAddress,
            let interface = path.interface, interface.kind != .tunnel, interface.kind != .loopback
        else { return nil }
        return isFresh || way?.value.isWay(of: path) ?? false ? .zero : Dial.silencePatience
    }

    /// How long the next test of `path`, the kernel's way, waits.
    ///
    /// - Parameter failures: the tests that failed since the flow over another uplink stands.
    func pauseBeforeTrial(
        of path: Path?, afterFailures failures: Int, using random: inout some RandomNumberGenerator
    ) -> Duration {
        // How often in a row nothing got through before the last time.
        let times = path.flatMap { path in way.flatMap { $0.value.isWay(of: path) ? $0.value.times - 1 : nil } } ?? 0
        return Self.trials.delay(afterFailures: times + failures, using: &random)
    }
}
