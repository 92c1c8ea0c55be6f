// SPDX-License-Identifier: Apache-2.0

/// A process that a connection knows, by a number that the connection's driver gave it.
package struct KnownProcess: Hashable, Sendable {
    /// The number. No process of the connection has had it before.
    package let number: UInt64

    /// The process of a number.
    package init(_ number: UInt64) { self.number = number }
}

/// Who may read a socket, where it is not the agent.
package enum Reader: Hashable, Sendable {
    /// A process that took it.
    case client(KnownProcess)
    /// A program that was launched with it. How it ends is told with its end.
    case program(KnownProcess)
    /// A program that is being launched with it.
    case launch(WakeAttempt.ID)
    /// A process that cannot be watched.
    case unknown

    /// Its process, where there is one that is known.
    package var process: KnownProcess? {
        switch self {
        case .client(let process), .program(let process): process
        case .launch, .unknown: nil
        }
    }

    /// Whether it is the process that another reader is.
    func isProcess(of other: Reader) -> Bool { process != nil && process == other.process }
}

/// Whether who was given a socket has read or written on it since.
package enum Touch: Hashable, Sendable {
    /// Neither.
    case untouched
    /// One of both.
    case touched
    /// The socket does not say.
    case unknown
}

/// What a connection asks of its surroundings while it decides: what the kernel has, and what processes do.
package protocol ConnectionFacts {
    /// How many bytes wait on the flow that stands.
    func unreadBytes(on epoch: UInt64) -> Int
    /// Whether bytes may wait on a flow. They count as waiting where the socket does not say.
    func mayHaveUnread(_ epoch: UInt64) -> Bool
    /// What the last reader of a flow has done on it.
    func touch(of epoch: UInt64) -> Touch
    /// How a process can be reached.
    func presence(of process: KnownProcess) -> ClientPresence
    /// Whether somebody watches the connection who may be the client, which is this process where it is known.
    func isWatched(by process: KnownProcess?) -> Bool
}
