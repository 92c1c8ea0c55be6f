// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// Gives memory back after a burst of events: dialling takes much for a moment (sockets that raced and lost),
/// and what is freed lies between what stays.
@AgentQueue
final class BurstTrim {
    /// So many events are a burst. Fewer leave little behind.
    static let burst = 100
    private let delay: Duration
    private let trim: @AgentQueue () -> Void
    private var events = 0
    private var timer: Timers.Timer?

    /// Calls `trim` this long after a burst began. After five seconds one of a few hundred events is over, and one of
    /// many thousands gets its next turn soon.
    init(after delay: Duration = .seconds(5), _ trim: @escaping @AgentQueue () -> Void = { ResidentMemory.trim() }) {
        self.delay = delay
        self.trim = trim
    }

    /// Whether memory is about to be given back.
    var isDue: Bool { timer != nil }

    /// Something happened to a connection.
    func noteEvent() {
        events += 1
        guard events >= Self.burst, timer == nil else { return }
        timer = Timers.shared.schedule(after: delay) { [weak self] in self?.ring() }
    }

    private func ring() {
        timer = nil
        events = 0
        trim()
    }
}
