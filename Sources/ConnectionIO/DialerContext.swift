// SPDX-License-Identifier: Apache-2.0

package import DialtoneCoalescing
package import DialtoneConnection
package import DialtoneNetworkPath
package import DialtonePlatform

/// Something that goes on until it is cancelled: a query, an observation.
@AgentQueue
package protocol Ongoing: AnyObject {
    /// Ends it. Its handler is not called any more, and is released.
    func cancel()
}

/// Where connections learn the way to their remote.
@AgentQueue
package protocol PathSource: AnyObject {
    /// Calls `handler` with the path to `target` as it is now, within this call or soon after, and with each later one,
    /// until what is returned is cancelled. What must be asked for it counts against `account`.
    func observePath(
        to target: Target, for account: Account, _ handler: @escaping @AgentQueue (Path) -> Void
    ) -> any Ongoing

    /// A way to `remote`, an end of `target`'s, by another interface than the one of the index `avoided`; `nil` where
    /// there is none. Cheap uplinks come first.
    func detour(to remote: Endpoint, around avoided: Int, for target: Target) -> Detour?

    /// The network that a path leads through; `nil` for one that could not be known again. Meant for now and then: it
    /// may ask the kernel.
    func network(of path: Path) -> NetworkIdentity?
}

/// Where connections learn what stands behind a name.
@AgentQueue
package protocol NameSource: AnyObject {
    /// Asks anew, cached answers aside that are within their time to live, and calls `completion` once: with the
    /// answer, in which there is at least one item, or with why there is none. Addresses come with the source that a
    /// packet of the target's properties would have. Not called within this call, nor after what is returned was
    /// cancelled.
    func ask(
        _ question: NameQuestion, for target: Target,
        _ completion: @escaping @AgentQueue (Result<NameAnswer, ResolutionFailure>) -> Void
    ) -> any Ongoing
}

/// Where copies of flows' sockets are kept beyond the life of this process.
@AgentQueue
package protocol FlowStore: AnyObject {
    /// Keeps copies of what belongs together, from before this returns until ``discard(_:)``.
    ///
    /// - Returns: the number by which a later process gets them; `nil` where they cannot be kept.
    func keep(_ descriptors: [CInt]) -> UInt64?

    /// Closes the copies.
    func discard(_ number: UInt64)
}

/// What all connections of an agent share.
@AgentQueue
package final class DialerContext {
    /// Where they learn the way to their remote.
    package let paths: any PathSource
    /// Where they learn the addresses of a name.
    package let names: any NameSource
    /// What their keepalives have learned of the networks, by user.
    package let intervals: IntervalLearners
    /// What the users have caused on the network.
    package var budget = NetworkBudget()
    /// Called with each word that a connection was told and that cannot be. A build for debugging ends with the first.
    package var onObjection: (@AgentQueue (String, ConnectionLabel?) -> Void)?
    /// When the keepalives of all of them are sent.
    let wakes = CoalescedTimers()
    /// How flows get TLS.
    let relay: RelayAccess

    /// The surroundings of connections.
    package init(
        paths: any PathSource, names: any NameSource, relay: RelayAccess = .none,
        intervals: IntervalLearners = IntervalLearners()
    ) {
        self.relay = relay
        self.paths = paths
        self.names = names
        self.intervals = intervals
    }

    /// Calls `handler` as often as `cadence` says, counted from now and together with the keepalives that are due about
    /// then, until what is returned is cancelled.
    ///
    /// - Parameter wakesMachine: whether a machine that sleeps is to be woken for it.
    package func plan(
        _ cadence: Cadence, wakesMachine: Bool = false, _ handler: @escaping @AgentQueue () -> Void
    ) -> any Ongoing {
        PlannedCalls(wakes, wakes.add(cadence, wakesMachine: wakesMachine, handler))
    }

    /// Calls `handler`, once, when the machine was to be woken for a keepalive and the kernel does not let this process
    /// do so. The keepalive is sent on resume then.
    package func onAlarmRefused(_ handler: @escaping @AgentQueue (SystemError) -> Void) {
        wakes.onAlarmRefused = handler
    }
}

/// Who hears what happens to a connection, and knows its clients and their processes.
@AgentQueue
package protocol ConnectionObserver: AnyObject {
    /// Something happened, and this wake stands; of an event of the wakes, what happened to one. The connection's
    /// ``ConnectionDriver/status`` says already what the event says.
    func connection(
        _ connection: ConnectionDriver, did event: ConnectionEvent, wake: StandingWake?, _ report: WakeReport?)
    /// A message of the server's was answered while the client sleeps.
    func connectionAnswered(_ connection: ConnectionDriver)
    /// The client is to be woken, which is this process where it is known; answered by
    /// ``ClientInput/attempted(_:_:)``.
    func connection(_ connection: ConnectionDriver, attempts attempt: WakeAttempt, _ process: KnownProcess?)
    /// A program is to be launched, with this flow where there is one for it
    /// (``ConnectionEffect/launch(_:epoch:)``).
    func connection(
        _ connection: ConnectionDriver, launches attempt: WakeAttempt, with flow: consuming HandedFlow?)
    /// The program of an attempt of an earlier run is to be found, if there is one (``ConnectionEffect/find(_:)``).
    func connection(_ connection: ConnectionDriver, finds attempt: WakeAttempt.ID)
    /// How a process can be reached.
    func presence(of process: KnownProcess) -> ClientPresence
    /// Whether somebody watches the connection who may be its client, which is this process where it is known.
    func isWatched(by process: KnownProcess?) -> Bool
}

/// An entry of the schedule that all wakes share.
@AgentQueue
private final class PlannedCalls: Ongoing {
    private let schedule: CoalescedTimers
    private var token: TimerCoalescer.Token?

    init(_ schedule: CoalescedTimers, _ token: TimerCoalescer.Token) {
        self.schedule = schedule
        self.token = token
    }

    func cancel() {
        guard let token = token.take() else { return }
        schedule.remove(token)
    }
}
