// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
internal import Glibc

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
    /// Whether something is being done that is counted already: what is there now may be less.
    package var isAhead = false
    /// How much of what came from the server is done with; `nil` where a version counts that does not say.
    package var settled: Settled?

    /// How much of what came over the TCP socket is done with: the client's end of the pair has what it says.
    package enum Settled: Hashable, Sendable {
        /// So many bytes, without the highest bits. A record of which a part is missing says nothing, so the part
        /// that is there is done with.
        case bytes(UInt32)
        /// All that ever comes.
        case all

        /// What fits beside the marks. `dialtone-tls` and the socket hold a thousandth of that at most.
        fileprivate static let mask: UInt64 = (1 << 29) - 1

        /// So many bytes.
        package init(bytes count: UInt64) { self = .bytes(UInt32(count & Self.mask)) }

        /// How many bytes are not done with when so many have come.
        package func rest(of received: UInt64) -> UInt64 {
            switch self {
            case .bytes(let count): (received &- UInt64(count)) & Self.mask
            case .all: 0
            }
        }
    }

    /// A stream that has not begun.
    package init() {}

    /// Where a flow's are in the file. Whoever had the place before may write there for a moment still: what does not
    /// bear the flow's mark is not this flow's.
    package struct Place: Hashable, Sendable {
        /// The number of the place.
        package let number: UInt32
        /// The mark.
        package let mark: UInt32

        /// A place.
        package init(number: UInt32, mark: UInt32) { (self.number, self.mark) = (number, mark) }

        /// As one number, to be written down.
        package var code: UInt64 { UInt64(mark) << 32 | UInt64(number) }

        /// What was written down; `nil` for what no place has.
        package init?(code: UInt64) {
            (number, mark) = (UInt32(truncatingIfNeeded: code), UInt32(code >> 32))
            guard number < Self.most else { return nil }
        }

        /// More flows than any process has descriptors for.
        package static let most: UInt32 = 1 << 22
    }

    /// How much of the file a flow has.
    private static let size = 32
    // The flags below the mark. An earlier version of `dialtone-tls` writes the first alone, and leaves 0 in the place
    // of the others; an earlier agent reads the first alone.
    private static let aheadBit: UInt64 = 1
    private static let settledBit: UInt64 = 2
    private static let allBit: UInt64 = 4
    private static let settledShift: UInt64 = 3

    private var flags: UInt64 {
        let settled: UInt64 =
            switch settled {
            case .bytes(let count): Self.settledBit | UInt64(count) << Self.settledShift
            case .all: Self.settledBit | Self.allBit
            case nil: 0
            }
        return settled | (isAhead ? Self.aheadBit : 0)
    }

    private mutating func take(flags: UInt64) {
        isAhead = flags & Self.aheadBit != 0
        guard flags & Self.settledBit != 0 else { return settled = nil }
        settled = flags & Self.allBit != 0 ? .all : Settled(bytes: flags >> Self.settledShift)
    }

    /// Writes them to a flow's place.
    package func write(to file: borrowing OwnedDescriptor, at place: Place) {
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 4) { numbers in
            (numbers[0], numbers[1], numbers[2]) = (delivered, taken, sent)
            numbers[3] = UInt64(place.mark) << 32 | flags
            // Of a file in memory it fails where there is no memory; what stands there then is older.
            _ = pwrite(file.number, numbers.baseAddress, Self.size, off_t(place.number) * off_t(Self.size))
        }
    }

    /// Reads those of a flow; `nil` where there are none.
    package init?(of file: borrowing OwnedDescriptor, at place: Place) {
        let numbers = withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 4) { numbers -> StreamCounts? in
            let offset = off_t(place.number) * off_t(Self.size)
            guard pread(file.number, numbers.baseAddress, Self.size, offset) == Self.size,
                numbers[3] >> 32 == UInt64(place.mark)
            else { return nil }
            var counts = StreamCounts()
            (counts.delivered, counts.taken, counts.sent) = (numbers[0], numbers[1], numbers[2])
            counts.take(flags: numbers[3])
            return counts
        }
        guard let numbers else { return nil }
        self = numbers
    }
}
