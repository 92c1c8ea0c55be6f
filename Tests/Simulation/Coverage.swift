// SPDX-License-Identifier: Apache-2.0

@testable import DialtoneConnection

/// What came about, at least once or so many times.
struct Coverage: Sendable {
    var states: Set<ConnectionStatus.State> = []
    var closings: Set<CloseReason> = []
    var kinds: Set<ConnectionEvent.Kind> = []
    var deeds: Set<Deed> = []
    /// How often somebody was given a socket, a program began, and the agent was killed.
    var takes = 0
    var launches = 0
    var kills = 0

    mutating func formUnion(_ other: Coverage) {
        states.formUnion(other.states)
        closings.formUnion(other.closings)
        kinds.formUnion(other.kinds)
        deeds.formUnion(other.deeds)
        takes += other.takes
        launches += other.launches
        kills += other.kills
    }
}
