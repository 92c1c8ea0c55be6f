// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
package import DialtonePlatform
internal import Glibc

/// The descriptors that ride on one message, in their order: a field of the message names each by its place.
///
/// They are owned: whoever takes one closes it from then on, and those that nobody takes are closed with the instance.
@AgentQueue
package final class VarlinkDescriptors {
    /// The most that the kernel lets ride on one message (`SCM_MAX_FD`).
    package nonisolated static let most = Int(platform_descriptors_max)

    private struct Place {
        /// `-1` where it was taken.
        var number: CInt
        /// Who can make closing it wait (``OwnedDescriptor``).
        let user: UInt32?
    }

    private var places: [Place]
    /// What they count against, when they came from a peer.
    private let allowance: DescriptorAllowance?

    /// None yet.
    package init() {
        places = []
        allowance = nil
    }

    /// Those that came from a peer, and count until they are taken or closed.
    init(received numbers: some Sequence<CInt>, allowance: DescriptorAllowance) {
        places = numbers.map { Place(number: $0, user: allowance.user) }
        self.allowance = allowance
        allowance.used += places.count
    }

    isolated deinit { closeAll() }

    /// How many there are, those that were taken among them.
    package var count: Int { places.count }

    /// Adds one, of ``most`` at the most, and returns its place.
    package func append(_ descriptor: consuming OwnedDescriptor) -> Int {
        // Of a reply that this process composes: two at most.
        precondition(places.count < Self.most, "no more than \(Self.most) descriptors ride on a message")
        let user = descriptor.user
        places.append(Place(number: descriptor.release(), user: user))
        return places.count - 1
    }

    /// The one at `place`, for the caller to own; `nil` if there is none, or if it was taken before.
    package func take(_ place: Int) -> OwnedDescriptor? {
        guard let descriptor = remove(place) else { return nil }
        allowance?.used -= 1
        return descriptor
    }

    /// The number of the one at `place`, which stays here; `nil` if there is none, or if it was taken.
    func number(at place: Int) -> CInt? {
        guard places.indices.contains(place), places[place].number >= 0 else { return nil }
        return places[place].number
    }

    private func remove(_ place: Int) -> OwnedDescriptor? {
        guard let number = number(at: place) else { return nil }
        defer { places[place].number = -1 }
        return OwnedDescriptor(number, sharedWith: places[place].user)
    }

    /// Closes those that nobody took, however many still hold this instance.
    func closeAll() {
        for place in places.indices { remove(place)?.close { [allowance] in allowance?.used -= 1 } }
    }

    /// Calls `body` with the numbers, for a system call.
    func withNumbers<T>(_ body: (UnsafeBufferPointer<CInt>) -> T) -> T {
        let numbers = places.map(\.number)
        // Likewise; what was received is never sent on.
        precondition(!numbers.contains(-1), "a descriptor that is to ride on a message was taken")
        return numbers.withUnsafeBufferPointer(body)
    }
}

/// How many descriptors may have come, on one or several connections, and be neither taken nor closed yet.
@AgentQueue
final class DescriptorAllowance {
    let limit: Int
    /// Whose they are; `nil` in that user's own process.
    let user: UInt32?
    fileprivate(set) var used = 0

    init(limit: Int, of user: UInt32? = nil) {
        (self.limit, self.user) = (limit, user)
    }
}

/// The descriptors that came on a connection and whose message was not taken yet.
///
/// A descriptor rides on a byte, and the kernel hands it out with the read that takes this byte. Such a read may begin
/// with bytes of messages before, but it ends with those of the one `sendmsg` that the descriptor rode on (`unix(7)`).
/// So it belongs to the message of the read's last byte, provided that a message with descriptors is a `sendmsg` of its
/// own, as the convention says.
@AgentQueue
struct DescriptorInbox {
    /// The most that may ride on one message.
    let limit: Int
    private let allowance: DescriptorAllowance
    private var waiting: [(ordinal: Int, descriptors: VarlinkDescriptors)] = []

    init(limit: Int, allowance: DescriptorAllowance) {
        self.limit = min(limit, VarlinkDescriptors.most)
        self.allowance = allowance
    }

    /// Whether no message was taken that one of them rode on.
    var isEmpty: Bool { waiting.isEmpty }

    /// Whether one more is too much. What is read all the same may hold some, and they are received: the kernel would
    /// close what there is no room for on the queue's thread, and that can wait (``OwnedDescriptor``).
    var isFull: Bool { allowance.used >= allowance.limit }

    /// Keeps what came with a read for the message of this ordinal.
    ///
    /// - Parameter isRefused: whether it is closed at once instead.
    /// - Returns: how many were closed.
    mutating func collect(
        _ header: inout msghdr, ordinal: Int, isRefused: Bool
    ) throws(VarlinkViolation) -> Int {
        let isTruncated = header.msg_flags & CInt(MSG_CTRUNC) != 0
        guard isTruncated || header.msg_controllen > 0 else { return 0 }
        let wasUsed = allowance.used
        let received = withUnsafeTemporaryAllocation(of: CInt.self, capacity: VarlinkDescriptors.most) { numbers in
            let count = platform_received_descriptors(&header, numbers.baseAddress)
            return VarlinkDescriptors(received: numbers.prefix(Int(count)), allowance: allowance)
        }
        let isTooMany = received.count > min(limit, allowance.limit - wasUsed)
        if isTruncated || isTooMany { throw .descriptorsTruncated }
        if isRefused {
            received.closeAll()
            return received.count
        }
        guard received.count > 0 else { return 0 }
        guard waiting.last?.ordinal != ordinal else { throw .descriptorsInPieces }
        waiting.append((ordinal, received))
        return 0
    }

    /// Those of the message of this ordinal, once it was taken.
    mutating func take(_ ordinal: Int) -> VarlinkDescriptors? {
        guard waiting.first?.ordinal == ordinal else { return nil }
        return waiting.removeFirst().descriptors
    }

    /// Closes all that wait.
    mutating func removeAll() {
        for (_, descriptors) in waiting { descriptors.closeAll() }
        waiting = []
    }
}
