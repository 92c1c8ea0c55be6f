// SPDX-License-Identifier: Apache-2.0

/// What the kernel knows of a neighbour (`RTM_GETNEIGH`).
package struct NeighbourEntry: Hashable, Sendable {
    /// Whether it answers (`ndm_state`).
    package enum State: Hashable, Sendable {
        /// It is being asked for, for the first time.
        case incomplete
        /// It answered within the last half minute or so.
        case reachable
        /// It answered once. It is asked again when a packet goes there.
        case stale
        /// It is asked again, or will be in a moment.
        case probing
        /// It does not answer.
        case failed
        /// Nobody asks it: an administrator wrote the entry, or the link has no need.
        case fixed
    }

    /// Whether it answers.
    package var state: State
    /// How long it has been in that state (`NDA_CACHEINFO`); for ``State/failed``, since it was last asked for in vain.
    package var age: Duration?

    /// An entry.
    package init(_ state: State, age: Duration? = nil) {
        self.state = state
        self.age = age
    }
}
