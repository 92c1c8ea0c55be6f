// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import Platform

/// How far the stream of a flow with TLS is. `dialtone-tls` writes it into a file in memory that the agent made, where
/// the agent reads it without asking anybody: whether a client touched its stream must be known in the moment in which
/// the client ends.
///
/// A count is written before what it counts is done, and put right afterwards if less was done: who reads in between,
/// or after `dialtone-tls` was killed there, takes the stream for touched rather than not.
package struct StreamCounts: Hashable, Sendable {
    /// The bytes of plaintext that were put into the agent's end of the pair.
    package var delivered: UInt64 = 0
    /// Those that were taken out of it, to be encrypted; the end of the client's stream counts as one.
    package var taken: UInt64 = 0
    /// Of those, how many are in the TCP socket.
    package var sent: UInt64 = 0

    /// A stream that has not begun.
    package init() {}

    /// How much of the file a flow has.
    package static let size = 32

    /// Writes them to a flow's place.
    package func write(to file: borrowing OwnedDescriptor, at place: UInt32) {
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 3) { numbers in
            (numbers[0], numbers[1], numbers[2]) = (delivered, taken, sent)
            // Of a file in memory it fails where there is no memory; what stands there then is older.
            _ = pwrite(file.number, numbers.baseAddress, 24, off_t(place) * off_t(Self.size))
        }
    }

    /// Reads those of a flow; `nil` where there are none.
    package init?(of file: borrowing OwnedDescriptor, at place: UInt32) {
        let numbers = withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 3) { numbers -> StreamCounts? in
            guard pread(file.number, numbers.baseAddress, 24, off_t(place) * off_t(Self.size)) == 24 else {
                return nil
            }
            var counts = StreamCounts()
            (counts.delivered, counts.taken, counts.sent) = (numbers[0], numbers[1], numbers[2])
            return counts
        }
        guard let numbers else { return nil }
        self = numbers
    }
}
