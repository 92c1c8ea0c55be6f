// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Dispatch
internal import Glibc
internal import Platform

/// Closes what one user sent, without waiting for it.
///
/// The last `close(2)` of an open file can be made to wait: by a socket with `SO_LINGER` and bytes that its peer does
/// not take, or by a file of a file system in user space, which is asked to flush it and answers when it likes. So can
/// the close of a Unix socket in which such a descriptor waits unread, and a read that has no room for one: the kernel
/// closes it there and then, on the thread that reads. A client that sends one must not hold up the agent's queue.
///
/// One thread per user closes, and only while something is to be closed: a user who makes it wait holds up the close of
/// what the same user sent. How much can wait is for the caller to bound.
final class StrangeDescriptors: Sendable {
    private let queue = DispatchQueue(label: "org.dialtone.closing")

    /// Closes a descriptor and calls `completion`: at once for a socket; for anything else when it is closed, however
    /// long that takes.
    @AgentQueue
    func close(_ descriptor: consuming OwnedDescriptor, _ completion: @escaping @AgentQueue () -> Void) {
        if Self.endLingering(descriptor.number) {
            descriptor.close()
            return completion()
        }
        let number = descriptor.release()
        queue.async {
            OwnedDescriptor(number).close()
            AgentQueue.async(completion)
        }
    }

    /// Closes a connected Unix socket and calls `completion`: at once where its peer sent nothing that was not read,
    /// else when that is closed as well.
    @AgentQueue
    func close(connection: consuming OwnedDescriptor, _ completion: @escaping @AgentQueue () -> Void) {
        // From here on nothing is added.
        shutdown(connection.number, CInt(SHUT_RDWR))
        guard connection.number.hasUnreadBytes else {
            connection.close()
            return completion()
        }
        let number = connection.release()
        queue.async {
            let connection = OwnedDescriptor(number)
            Self.drain(connection.number)
            connection.close()
            AgentQueue.async(completion)
        }
    }

    /// Makes closing a socket not wait; false for what is no socket.
    private static func endLingering(_ number: CInt) -> Bool {
        var none = linger(l_onoff: 0, l_linger: 0)
        return setsockopt(number, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout.size(ofValue: none))) == 0
    }

    /// Reads what is left in a socket to which nothing is added, and closes each descriptor in it.
    private static func drain(_ number: CInt) {
        var bytes = [UInt8](repeating: 0, count: 4096)
        var control = [UInt64](repeating: 0, count: Int(platform_descriptors_space) / MemoryLayout<UInt64>.size + 1)
        var numbers = [CInt](repeating: -1, count: VarlinkDescriptors.most)
        while true {
            let count = bytes.withUnsafeMutableBytes { bytes in
                control.withUnsafeMutableBytes { control in
                    numbers.withUnsafeMutableBufferPointer { numbers in
                        receive(from: number, bytes, control, into: numbers)
                    }
                }
            }
            guard let count else { return }
            for descriptor in numbers.prefix(count) {
                _ = endLingering(descriptor)
                OwnedDescriptor(descriptor).close()
            }
        }
    }

    /// The descriptors of one read; `nil` where nothing is left.
    private static func receive(
        from number: CInt, _ bytes: UnsafeMutableRawBufferPointer, _ control: UnsafeMutableRawBufferPointer,
        into numbers: UnsafeMutableBufferPointer<CInt>
    ) -> Int? {
        var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &vector) { vector in
            var header = msghdr()
            header.msg_iov = vector
            header.msg_iovlen = 1
            header.msg_control = control.baseAddress
            header.msg_controllen = control.count
            guard recvmsg(number, &header, CInt(MSG_CMSG_CLOEXEC) | CInt(MSG_DONTWAIT)) > 0 else { return nil }
            return Int(platform_received_descriptors(&header, numbers.baseAddress))
        }
    }
}

extension CInt {
    /// Whether bytes wait in the socket of this number (`SIOCINQ` of unix(7)).
    fileprivate var hasUnreadBytes: Bool {
        var count: CInt = 0
        return ioctl(self, UInt(FIONREAD), &count) != 0 || count > 0
    }
}
