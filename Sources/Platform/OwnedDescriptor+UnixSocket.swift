// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc

// Of a Unix socket, into which its peer can send descriptors. The kernel closes those for which a read has no room
// there and then, on the thread that reads; and so it does with what waits unread when the socket is closed.

extension OwnedDescriptor {
    /// Whether the peer may send descriptors from now on. Where not, it is refused (`EPERM`); before Linux 6.16 the
    /// kernel knows no such option (`SO_PASSRIGHTS`), and they come all the same.
    public borrowing func acceptDescriptors(_ isOn: Bool) { set(CInt(platform_SO_PASSRIGHTS), isOn ? 1 : 0) }

    /// Has what comes out of band (`MSG_OOB`) read in its turn: a read that comes to it drops it otherwise, with the
    /// descriptors that ride on it.
    public borrowing func readUrgentInTurn() { set(SO_OOBINLINE, 1) }

    private borrowing func set(_ option: CInt, _ value: CInt) {
        var value = value
        // The first is refused by older kernels, neither by any other.
        _ = setsockopt(number, SOL_SOCKET, option, &value, socklen_t(MemoryLayout.size(ofValue: value)))
    }

    /// Reads what is there (recv(2)); descriptors that ride on it are closed as this one will be.
    public borrowing func receiveBytes(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var vector = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
        return withUnsafeMutablePointer(to: &vector) { vector in
            withUnsafeTemporaryAllocation(
                byteCount: Int(platform_descriptors_space), alignment: MemoryLayout<cmsghdr>.alignment
            ) { control in
                var header = msghdr()
                header.msg_iov = vector
                header.msg_iovlen = 1
                header.msg_control = control.baseAddress
                header.msg_controllen = control.count
                let count = recvmsg(number, &header, CInt(MSG_CMSG_CLOEXEC) | CInt(MSG_DONTWAIT))
                if count >= 0, header.msg_controllen > 0 { closeAll(in: &header) }
                return count
            }
        }
    }

    private borrowing func closeAll(in header: inout msghdr) {
        withUnsafeTemporaryAllocation(of: CInt.self, capacity: Int(platform_descriptors_max)) { numbers in
            let count = Int(platform_received_descriptors(&header, numbers.baseAddress))
            for number in numbers.prefix(count) { OwnedDescriptor(number, sharedWith: user).close() }
        }
    }

    /// Ends the connection, even if another process has a descriptor of it, and closes this one: at once where its
    /// peer sent nothing that was not read.
    public consuming func endConnection() {
        // From here on nothing is added.
        shutdown(number, CInt(SHUT_RDWR))
        var unread: CInt = 0
        let isEmpty = ioctl(number, UInt(FIONREAD), &unread) == 0 && unread == 0
        if isEmpty { unshared().close() } else { close() }
    }
}
