// SPDX-License-Identifier: Apache-2.0

internal import Glibc
public import Platform
internal import RelayMessages

/// How flows get to `dialtone-tls`, and the file in memory in which it counts how far they are.
@AgentQueue
public final class RelayAccess {
    private let connecting: @AgentQueue () throws(SystemError) -> OwnedDescriptor
    private var file: OwnedDescriptor?
    private var places: Set<UInt32> = []
    private var free: [UInt32] = []

    /// Reaches it by `connect`, which returns a new connection to it and does not wait.
    ///
    /// - Parameter counts: the file that an earlier process made; `nil` for a new one, when it is needed.
    public init(
        counts: consuming OwnedDescriptor? = nil,
        _ connect: @escaping @AgentQueue () throws(SystemError) -> OwnedDescriptor
    ) {
        file = counts
        connecting = connect
    }

    /// There is none: no flow can have TLS.
    public static var none: RelayAccess {
        RelayAccess { () throws(SystemError) in throw SystemError("reaching dialtone-tls", code: ENOENT) }
    }

    /// Called when the file of the counts is made, for whoever keeps it for a later process.
    public var madeFile: (@AgentQueue (borrowing OwnedDescriptor) -> Void)?

    func connect() throws(SystemError) -> OwnedDescriptor { try connecting() }

    /// The number of the file.
    var countsNumber: CInt {
        switch file {
        case .some(let file): file.number
        case .none: -1
        }
    }

    func counts(at place: UInt32) -> StreamCounts? {
        switch file {
        case .some(let file): StreamCounts(of: file, at: place)
        case .none: nil
        }
    }

    /// A place for one flow, which has not counted yet.
    func takePlace() throws(SystemError) -> UInt32 {
        if file == nil {
            let new = try OwnedDescriptor.fileInMemory("dialtone-counts")
            madeFile?(new)
            file = consume new
        }
        let place = free.popLast() ?? UInt32(places.count)
        places.insert(place)
        switch file {
        case .some(let file): StreamCounts().write(to: file, at: place)
        case .none: break
        }
        return place
    }

    /// A flow of an earlier process has this place.
    func claim(_ place: UInt32) {
        guard places.insert(place).inserted else { return }
        // As many as there are flows, so those that are passed over are few.
        let next = (places.max() ?? 0) + 1
        free = (0..<next).filter { !places.contains($0) }
    }

    func giveBack(_ place: UInt32) {
        if places.remove(place) != nil { free.append(place) }
    }
}
