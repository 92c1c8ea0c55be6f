// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// Whether something gets through where the kernel's route leads: when a dial also tries another uplink, and how long
/// it waits with the next test of that route.
struct Silence {
    /// A way over which nothing got through.
    private struct Way {
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

    /// The way over which nothing got through while another uplink's did.
    private var way: Boxed<Way>?
    /// Whether the last dial or flow over the way that the kernel chooses fell silent.
    private var isFresh = false

    // MARK: - What happens

    /// A dial or a flow over the kernel's way fell silent.
    mutating func fell() { isFresh = true }

    /// A server answered, or another way is to be tried.
    mutating func ended() { isFresh = false }

    /// A flow over another uplink stands: `dial` made it, and `path` is the kernel's way.
    mutating func note(_ dial: Dial, over path: Path?, at now: Duration) {
        guard let path, var next = Way(path), dial.isSilent(for: Race.attemptDelay, at: now) else { return }
        if let before = way?.value, before.isWay(of: path) {
            // One that is slow once more is tried no later for that.
            next.times = before.times + (isFresh || dial.isSilent(for: Dial.silencePatience, at: now) ? 1 : 0)
        }
        way = .value(next)
    }

    /// A flow over the kernel's way stood for long: it is none to be avoided.
    mutating func proved() { way = nil }

    // MARK: - What follows

    /// How long a dial over `path` waits before it also tries another uplink.
    func patience(with path: Path) -> Duration {
        isFresh || way?.value.isWay(of: path) ?? false ? .zero : Dial.silencePatience
    }

    /// How often in a row nothing got through on `path` before the last time.
    func failures(over path: Path?) -> Int {
        guard let path, let way = way?.value, way.isWay(of: path) else { return 0 }
        return way.times - 1
    }
}
