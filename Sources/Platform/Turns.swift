// SPDX-License-Identifier: Apache-2.0

/// Something that is done in turns, on account of a user.
@AgentQueue
package protocol TurnTaker: AnyObject {
    /// Does a little, and stands in line again for more.
    func takeTurn()
}

/// Where everything that users cause waits for its turn, their calls and what TLS computes for their connections: the
/// driver of ``TurnOrder``.
///
/// What else the kernel reports goes first. After the events of a wake-up, in the same turn of the queue, turns are
/// taken for a slice of time; what is left then takes the next slice after all else that the queue has, new events
/// among it.
@AgentQueue
package final class Turns {
    /// The one line of the process: a user is one user, whichever server the calls come by.
    package static let shared = Turns()

    /// How long turns are taken before the kernel is listened to again. An event waits this long at most, and for the
    /// rest of one turn.
    private static let slice = Duration.milliseconds(1)

    private var order = TurnOrder<any TurnTaker>()
    private var isDue = false

    /// Lets `taker` wait for a turn on account of `user`: after the user's others, or before them. It must not wait for
    /// one already.
    package func add(_ taker: any TurnTaker, for user: UInt32, first: Bool = false) {
        order.add(taker, for: user, first: first)
        guard !isDue else { return }
        isDue = true
        Poller.shared.afterEvents { [self] in run() }
    }

    private func run() {
        var now = BootClock.now()
        let end = now + Self.slice
        while now < end, let taker = order.next() {
            taker.takeTurn()
            let start = now
            now = BootClock.now()
            order.end(after: now - start)
        }
        isDue = !order.isEmpty
        if isDue { AgentQueue.async { [self] in run() } }
    }
}

/// Something that is done in one turn.
@AgentQueue
package final class Errand: TurnTaker {
    private let work: @AgentQueue () -> Void

    /// An errand.
    package init(_ work: @escaping @AgentQueue () -> Void) { self.work = work }

    /// Does it.
    package func takeTurn() { work() }
}
