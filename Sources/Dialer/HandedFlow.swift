// SPDX-License-Identifier: Apache-2.0

public import Platform
public import Supervisor

/// A flow for a client to read and write.
public struct HandedFlow: ~Copyable {
    /// Its number, by which it is parked.
    public let epoch: UInt64
    /// A descriptor of it, blocking. Shares its open file description with the agent's own.
    public let descriptor: OwnedDescriptor
    /// Whether it has ended: what it received before is there to be read, and then the end. The flow that took its
    /// place is the next one to be taken.
    public let isOver: Bool

    /// The descriptor alone.
    public consuming func release() -> OwnedDescriptor { descriptor }
}

/// Who takes a flow, as far as it matters for who comes again.
public enum FlowTaker: Hashable, Sendable {
    /// A process whose end will be told. The number is whatever its watcher knows it by.
    case process(Int)
    /// One that cannot be watched.
    case unknown
    /// A program that is about to be launched.
    case program
}

/// Why a flow cannot be taken.
public enum TakeRefusal: Error {
    /// There is none, or one on which the agent plays the opening exchange.
    case notReady(ConnectionStatus.State)
    /// Descriptors have run out.
    case system(SystemError)
}

/// Why a flow cannot be parked.
public enum ParkRefusal: Error {
    /// It is over; this one is the newest.
    case staleEpoch(current: UInt64)
    /// Nobody has taken it.
    case notTaken
}
