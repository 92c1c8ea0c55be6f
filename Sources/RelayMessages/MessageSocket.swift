// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
package import DialtonePlatform
internal import Glibc

/// The socket over which the agent and `dialtone-tls` speak of one flow: a Unix socket that keeps messages apart
/// (`SOCK_SEQPACKET`).
package struct MessageSocket: ~Copyable {
    /// The longest message: a request with sixteen protocols and a hundred pins has 10 KB, a failure less.
    package static let longest = 64 * 1024

    /// What came.
    package enum Arrival: ~Copyable {
        case message([UInt8], Descriptors)
        /// Nothing now.
        case nothing
        /// The peer is gone.
        case end
    }

    /// What rode on a message.
    package struct Descriptors: ~Copyable {
        private var numbers: [CInt]

        private let user: UInt32?

        fileprivate init(_ numbers: [CInt], sharedWith user: UInt32?) { (self.numbers, self.user) = (numbers, user) }

        /// How many are left.
        package var count: Int { numbers.count }

        /// The first one that is left.
        package mutating func takeFirst() -> OwnedDescriptor? {
            numbers.isEmpty ? nil : OwnedDescriptor(numbers.removeFirst(), sharedWith: user)
        }

        deinit { for number in numbers { OwnedDescriptor(number, sharedWith: user).close() } }
    }

    /// The socket.
    package let descriptor: OwnedDescriptor

    /// Speaks over this socket. What rides on messages is closed as this is.
    package init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }

    /// Its number.
    package var number: CInt { descriptor.number }

    /// Sends a message, whole or not at all; with descriptors, which stay the caller's.
    package borrowing func send(_ bytes: [UInt8], _ descriptors: [CInt] = []) throws(SystemError) {
        let sent = bytes.withUnsafeBytes { bytes in
            descriptors.withUnsafeBufferPointer {
                platform_send(number, bytes.baseAddress, bytes.count, $0.baseAddress, CInt($0.count))
            }
        }
        if sent < 0 { throw .last("telling dialtone-tls") }
    }

    /// Takes the next message. One that is too long, or whose descriptors found no room, is the end.
    package borrowing func receive() -> Arrival {
        let number = descriptor.number
        var numbers: [CInt] = []
        var (flags, code): (CInt, CInt) = (0, 0)
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.longest) { buffer, length in
            numbers = [CInt](unsafeUninitializedCapacity: Int(platform_descriptors_max)) { numbers, count in
                var riding: CInt = 0
                let received = platform_receive(
                    number, buffer.baseAddress, buffer.count, numbers.baseAddress, &riding, &flags)
                code = received < 0 ? errno : 0
                (length, count) = (max(received, 0), Int(riding))
            }
        }
        let descriptors = Descriptors(numbers, sharedWith: descriptor.user)
        if code == EAGAIN || code == EINTR { return .nothing }
        let isCut = flags & (CInt(MSG_TRUNC) | CInt(MSG_CTRUNC)) != 0
        if bytes.isEmpty || isCut { return .end }
        return .message(bytes, descriptors)
    }
}
