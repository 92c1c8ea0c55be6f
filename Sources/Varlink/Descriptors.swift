// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc
public import Platform

/// The descriptors that ride on one message, in their order: a field of the message names each by its place.
///
/// They are owned: whoever takes one closes it from then on, and those that nobody takes are closed with the instance.
@AgentQueue
public final class VarlinkDescriptors {
    /// The most that the kernel lets ride on one message (`SCM_MAX_FD`).
    public nonisolated static let most = Int(platform_descriptors_max)

    /// `-1` where one was taken.
    private var numbers: [CInt]
    /// What they count against, when they came from a peer.
    private let allowance: DescriptorAllowance?

    /// None yet.
    public init() {
        numbers = []
        allowance = nil
    }

    /// Those that came from a peer, and count until they are taken or closed.
    init(received numbers: some Sequence<CInt>, allowance: DescriptorAllowance) {
        self.numbers = Array(numbers)
        self.allowance = allowance
        allowance.used += self.numbers.count
    }

    isolated deinit { closeAll() }

    /// How many there are, those that were taken among them.
    public var count: Int { numbers.count }

    /// Adds one, of ``most`` at the most, and returns its place.
    public func append(_ descriptor: consuming OwnedDescriptor) -> Int {
        // Of a reply that this process composes: two at most.
        precondition(numbers.count < Self.most, "no more than \(Self.most) descriptors ride on a message")
        numbers.append(descriptor.release())
        return numbers.count - 1
    }

    /// The one at `place`, for the caller to own; `nil` if there is none, or if it was taken before.
    public func take(_ place: Int) -> OwnedDescriptor? {
        guard let descriptor = remove(place) else { return nil }
        allowance?.used -= 1
        return descriptor
    }

    /// The number of the one at `place`, which stays here; `nil` if there is none, or if it was taken.
    func number(at place: Int) -> CInt? {
        guard numbers.indices.contains(place), numbers[place] >= 0 else { return nil }
        return numbers[place]
    }

    private func remove(_ place: Int) -> OwnedDescriptor? {
        guard numbers.indices.contains(place), numbers[place] >= 0 else { return nil }
        defer { numbers[place] = -1 }
        return OwnedDescriptor(numbers[place])
    }

    /// Closes those that nobody took, however many still hold this instance.
    func closeAll() {
        for place in numbers.indices {
            guard let descriptor = remove(place) else { continue }
            if let allowance {
                allowance.closing.close(descriptor) { allowance.used -= 1 }
            } else {
                descriptor.close()
            }
        }
    }

    /// Calls `body` with the numbers, for a system call.
    func withNumbers<T>(_ body: (UnsafeBufferPointer<CInt>) -> T) -> T {
        // Likewise; what was received is never sent on.
        precondition(!numbers.contains(-1), "a descriptor that is to ride on a message was taken")
        return numbers.withUnsafeBufferPointer(body)
    }
}

/// How many descriptors may have come, on one or several connections, and be neither taken nor closed yet.
@AgentQueue
final class DescriptorAllowance {
    let limit: Int
    fileprivate(set) var used = 0
    /// How those that were not taken are closed.
    let closing = StrangeDescriptors()

    init(limit: Int) {
        self.limit = limit
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
    /// close what there is no room for on the queue's thread, and that can wait (``StrangeDescriptors``).
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

    /// Closes the connection that they came on.
    func close(_ socket: consuming OwnedDescriptor, _ completion: @escaping @AgentQueue () -> Void) {
        allowance.closing.close(connection: socket, completion)
    }
}
