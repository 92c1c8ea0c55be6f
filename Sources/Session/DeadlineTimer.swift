// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// Tells a value when its deadline is there. There is one timer, of the deadline that the value has now.
@AgentQueue
final class DeadlineTimer {
    private let passed: @AgentQueue () -> Void
    private var timer: Timers.Timer?

    /// - Parameter passed: is called at the deadline. The next one is set by it, or by whoever changes the value.
    init(_ passed: @escaping @AgentQueue () -> Void) { self.passed = passed }

    /// Follows the value: to be called after each of its inputs.
    func follow(_ deadline: Duration?) {
        guard timer?.deadline != deadline else { return }
        timer?.cancel()
        timer = deadline.map { time in
            Timers.shared.schedule(at: time) { [weak self] in
                self?.timer = nil
                self?.passed()
            }
        }
    }
}
