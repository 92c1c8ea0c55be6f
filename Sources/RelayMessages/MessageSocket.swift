// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc
package import Platform

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
        var bytes: [UInt8] = []
        var numbers: [CInt] = []
        let number = descriptor.number
        var flags: CInt = 0
        var code: CInt = 0
        bytes = [UInt8](unsafeUninitializedCapacity: Self.longest) { buffer, count in
            withUnsafeTemporaryAllocation(
                byteCount: Int(platform_descriptors_space), alignment: MemoryLayout<cmsghdr>.alignment
            ) { control in
                var vector = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
                withUnsafeMutablePointer(to: &vector) { vector in
                    var header = msghdr()
                    header.msg_iov = vector
                    header.msg_iovlen = 1
                    header.msg_control = control.baseAddress
                    header.msg_controllen = control.count
                    let received = recvmsg(number, &header, CInt(MSG_CMSG_CLOEXEC) | CInt(MSG_DONTWAIT))
                    code = received < 0 ? errno : 0
                    flags = header.msg_flags
                    count = max(received, 0)
                    guard received >= 0, header.msg_controllen > 0 else { return }
                    numbers = [CInt](unsafeUninitializedCapacity: Int(platform_descriptors_max)) { numbers, count in
                        count = Int(platform_received_descriptors(&header, numbers.baseAddress))
                    }
                }
            }
        }
        let descriptors = Descriptors(numbers, sharedWith: descriptor.user)
        if code == EAGAIN || code == EINTR { return .nothing }
        let isCut = flags & (CInt(MSG_TRUNC) | CInt(MSG_CTRUNC)) != 0
        if bytes.isEmpty || isCut { return .end }
        return .message(bytes, descriptors)
    }
}
