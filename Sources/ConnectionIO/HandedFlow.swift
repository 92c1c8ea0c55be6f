// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
package import DialtonePlatform

/// A flow for a client to read and write.
package struct HandedFlow: ~Copyable {
    /// Its number, by which it is parked.
    package let epoch: UInt64
    /// A descriptor of it, blocking. Shares its open file description with the agent's own.
    package let descriptor: OwnedDescriptor
    /// Whether it has ended: what it received before is there to be read, and then the end. The flow that took its
    /// place is the next one to be taken.
    package let isOver: Bool

    /// The descriptor alone.
    package consuming func release() -> OwnedDescriptor { descriptor }
}

/// Why a flow cannot be taken.
package enum TakeFailure: Error {
    /// The connection has none for who asked.
    case refused(TakeRefusal)
    /// Descriptors have run out.
    case system(SystemError)
}
