// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
package import DialtonePlatform
internal import DialtoneRelayMessages
internal import Glibc

/// How flows get to `dialtone-tls`, and the file in memory in which it counts how far they are.
@AgentQueue
package final class RelayAccess {
    /// A way to it for one flow.
    package struct Channel: ~Copyable {
        let descriptor: OwnedDescriptor
        /// Whether it goes on when the service of this process ends.
        let outlivesAgent: Bool

        /// A way.
        package init(_ descriptor: consuming OwnedDescriptor, outlivesAgent: Bool) {
            self.descriptor = descriptor
            self.outlivesAgent = outlivesAgent
        }
    }

    private let connecting: @AgentQueue () throws(SystemError) -> Channel
    private var file: OwnedDescriptor?
    private var places: Set<UInt32> = []
    /// Those below the highest that was ever had, the one longest free first. Looked for when the first is needed,
    /// behind those that an earlier process left.
    private var free: Deque<UInt32>?
    private var next: UInt32 = 0

    /// Reaches it by `connect`, which returns a new connection to it and does not wait.
    ///
    /// - Parameter counts: the file that an earlier process made; `nil` for a new one, when it is needed.
    package init(
        counts: consuming OwnedDescriptor? = nil,
        _ connect: @escaping @AgentQueue () throws(SystemError) -> Channel
    ) {
        file = counts
        connecting = connect
    }

    /// There is none: no flow can have TLS.
    package static var none: RelayAccess {
        RelayAccess { () throws(SystemError) in throw SystemError("reaching dialtone-tls", code: ENOENT) }
    }

    /// Called when the file of the counts is made, so that it can be kept for a later process.
    package var madeFile: (@AgentQueue (borrowing OwnedDescriptor) -> Void)?

    func connect() throws(SystemError) -> Channel { try connecting() }

    /// The number of the file.
    var countsNumber: CInt {
        switch file {
        case .some(let file): file.number
        case .none: -1
        }
    }

    func counts(at place: StreamCounts.Place) -> StreamCounts? {
        switch file {
        case .some(let file): StreamCounts(of: file, at: place)
        case .none: nil
        }
    }

    /// A place for one flow, which has not counted yet.
    func takePlace() throws(SystemError) -> StreamCounts.Place {
        if file == nil {
            let new = try OwnedDescriptor.fileInMemory("dialtone-counts")
            madeFile?(new)
            file = consume new
        }
        if free == nil { free = Deque((0..<next).filter { !places.contains($0) }) }
        let number = free?.popFirst() ?? next
        guard number < StreamCounts.Place.most else { throw SystemError("counting how far a flow is", code: EMFILE) }
        next = max(next, number + 1)
        places.insert(number)
        let place = StreamCounts.Place(number: number, mark: .random(in: 1 ... .max))
        switch file {
        case .some(let file): StreamCounts().write(to: file, at: place)
        case .none: break
        }
        return place
    }

    /// A flow of an earlier process has this place.
    func claim(_ place: StreamCounts.Place) {
        places.insert(place.number)
        next = max(next, place.number + 1)
    }

    func giveBack(_ place: StreamCounts.Place) {
        if places.remove(place.number) != nil { free?.append(place.number) }
    }
}
