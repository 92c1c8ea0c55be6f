// SPDX-License-Identifier: Apache-2.0

/// What must hold at every step, whatever the world does.
enum Invariant: String, CaseIterable {
    /// No socket is opened and no name asked for without a path.
    case noPacketWithoutPath
    /// One flow stands at most, and it is the one that the status speaks of.
    case oneFlow
    /// Attempts begin one after the other, with the time between them that they are given.
    case racesInTurn
    /// A flow that stands proves itself when it has to, and says no more of its proofs than is true.
    case proofsKept
    /// A server that wants to be left alone is.
    case serverHeeded
    /// A flow moves to a better path, and a move that fails is tried again.
    case movesToBetterPath
    /// Every socket has a higher epoch than those before, every query a higher number.
    case numbersIncrease
    /// A socket that is closed is open, and is closed once.
    case closesWhatIsOpen
    /// A state has its socket, its query and its timer, and no other.
    case stateHoldsWhatItNeeds
    /// A timer is not set for an instant that has passed.
    case deadlinesAhead
    /// No deadline is acted on before its time.
    case deadlinesKept
    /// Events form a chain: each begins where the last one ended, and the last one says what the status says.
    case eventsTellTheStatus
    /// A connection is not dialled more often in a minute than its budget allows.
    case attemptsBounded
    /// Nothing is dialled before the user's budget gives the connection its turn.
    case turnAwaited
    /// After a failure the wait lies in the range of its policy for the number of failures in a row.
    case backoffKept
    /// A path that comes or moves is dialled at once, within the budget.
    case pathDialledAtOnce
    /// A flow is closed for a cause that the rules name, and then at once.
    case flowEndsForCause
    /// Nothing stays bound to an address that is gone for longer than its grace, and no dial binds to one.
    case boundToWhatExists
    /// The path to the flow's other end is watched, by itself where the connection's leads elsewhere.
    case watchesTheWay
    /// The flow that stands has the socket options of the policy, whatever the policy was when it was dialled.
    case configuredAsAsked
    /// The addresses that are tried come from the newest answer, in its order.
    case dialsTheAnswer
    /// Another uplink is tried for an end that stays silent, once in a dial, where the policy allows it; and the flow
    /// that goes by one goes back.
    case detoursInNeed
    /// A login that the server refused for good is not tried again for a quarter of an hour, or a minute where the
    /// network is another one since, unless something else is said.
    case refusalHeeded
    /// `failed` has a cause that time does not mend, and a slow retry.
    case failedForCause
    /// News that change nothing are answered with nothing.
    case silentWithoutNews
    /// After the close there is nothing.
    case closedForGood
    /// With a path and a willing server the connection is ready within the bound.
    case readyInTime
    /// A flow is in one pair of hands, and what the status says of its session is what was said of it.
    case oneReader
    /// What a client has not read of a flow with a session is kept for it; where nobody was logged in, what the server
    /// said before it had the flow end.
    case restKept
    /// A session is said to be open where every step of the opening was answered or a client says so, and nowhere else.
    /// Nothing but the opening is sent on a flow before.
    case sessionsTrue
    /// Messages of the server's are answered on a flow that is parked with a session on it, as asked for, and nowhere
    /// else.
    case answersForSleepers
    /// An opening ends in its time, and one that nobody answers again and again calls the client.
    case openingsEnd
    /// A flow with a session on it is kept until the one that takes its place has a session.
    case keepsSession
    /// A flow that nothing touches stays, without an action.
    case staysReady
    /// Nobody is given a stream in the middle of what another one read.
    case nobodyReadsOn
    /// What waits for a client has it woken, until it comes or is given up aloud.
    case wokenForWhatWaits
    /// No program is launched while one runs.
    case oneProgram
    /// A connection is told nothing of what never was.
    case toldWhatCanBe
    /// What was so before the agent was killed is so afterwards.
    case survivesRestart
}

/// An invariant that did not hold.
struct Violation: Error, CustomStringConvertible {
    let invariant: Invariant
    let detail: String

    var description: String { "\(invariant.rawValue): \(detail)" }
}

/// Ends the run when an invariant does not hold.
func require(_ condition: Bool, _ invariant: Invariant, _ detail: @autoclosure () -> String) throws {
    if !condition { throw Violation(invariant: invariant, detail: detail()) }
}
