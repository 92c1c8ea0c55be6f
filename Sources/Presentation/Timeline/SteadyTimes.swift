// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneVarlink

/// The entries of a history with the time at which each happened, by a clock that nobody has set in between. The
/// entries say that time, too, so that sums over them are of the same time as the picture.
///
/// The wall clock of a machine without a clock of its own jumps when the network is there. How long the machine had
/// been up does not, from one start of the agent to its end: the times of each run count back from its last entry, and
/// those of the present one from now.
struct SteadyTimes: Sequence {
    private let entries: [(time: Timestamp, entry: ConnectionsAPI.History.Reply)]

    init(_ entries: [ConnectionsAPI.History.Reply], now: Timestamp, uptime: Duration?) {
        var times: [(time: Timestamp, entry: ConnectionsAPI.History.Reply)] = []
        var anchor: (wall: Timestamp, uptime: Duration)? = uptime.map { (now, $0) }
        var isLast = true
        // No later than what comes after it, whatever a damaged line says.
        var latest = now
        for entry in entries.reversed() {
            guard let wall = entry.time else { continue }
            let uptime = entry.uptime.flatMap { HistoryStory.uptimes.contains($0) ? $0 : nil }
            if let uptime, anchor == nil { anchor = (wall, uptime) }
            var time = wall
            // The machine may have been started anew since the last entry, and the agent with it.
            if let uptime, let known = anchor, uptime <= known.uptime || !isLast {
                let (seconds, rest) = (known.uptime - uptime).components
                time = Timestamp(
                    milliseconds: known.wall.milliseconds - seconds * 1000 - rest / 1_000_000_000_000_000)
            }
            latest = Swift.min(time, latest)
            times.append((latest, entry.moved(to: latest)))
            if entry.agent?.kind == .started { (anchor, isLast) = (nil, false) }
        }
        self.entries = times.reversed()
    }

    /// The entries alone.
    var moved: [ConnectionsAPI.History.Reply] { entries.map(\.entry) }

    func makeIterator() -> some IteratorProtocol<(time: Timestamp, entry: ConnectionsAPI.History.Reply)> {
        entries.makeIterator()
    }
}

extension ConnectionsAPI.History.Reply {
    /// Itself, as if it had happened at `time`.
    fileprivate func moved(to time: Timestamp) -> Self {
        var entry = self
        entry.event?.time = time
        entry.network?.time = time
        entry.agent?.time = time
        return entry
    }
}
