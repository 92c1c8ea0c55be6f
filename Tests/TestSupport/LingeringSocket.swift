// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
internal import Glibc

/// A socket whose last close waits until its peer has taken what was written, which it does not, or for a thousand
/// seconds.
package final class LingeringSocket: Sendable {
    /// Its descriptor, for the taker to close.
    package let number: CInt
    private let peer: Lock<CInt>

    package init() throws(SystemError) {
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let listener = OwnedDescriptor(socket(AF_INET, kind, 0))
        let (number, listening) = (socket(AF_INET, kind, 0), listener.number)
        self.number = number
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listening, address, length) == 0 && listen(listening, 1) == 0
                    && getsockname(listening, address, &length) == 0 && connect(number, address, length) == 0
            }
        }
        guard isConnected else { throw .last("connecting a socket that lingers") }
        let accepted = accept(listening, nil, nil)
        _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
        peer = Lock(accepted)
        let bytes = [UInt8](repeating: 0, count: 65_536)
        while send(number, bytes, bytes.count, CInt(MSG_DONTWAIT)) > 0 {}
        var linger = linger(l_onoff: 1, l_linger: 1000)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
    }

    deinit { hangUp() }

    /// Lets whoever closes it go on. A program that is started meanwhile has copies of both ends until it runs, and may
    /// be the one that waits, for itself: so the peer is disconnected, which needs no last close.
    package func hangUp() {
        peer.withLock { peer in
            guard peer >= 0 else { return }
            var nowhere = sockaddr()
            nowhere.sa_family = sa_family_t(AF_UNSPEC)
            connect(peer, &nowhere, socklen_t(MemoryLayout.size(ofValue: nowhere)))
            close(peer)
            peer = -1
        }
    }

    /// A Unix socket in which it waits unread, for the taker to close; the last close of this one waits as well. Its
    /// own descriptor is closed with that.
    package func inAnotherSocket() -> CInt {
        let ends = socketPair()
        precondition(pass(over: ends.1) == 1)
        close(ends.1)
        return ends.0
    }

    /// Sends it on a byte over a Unix socket, and closes its descriptor: the one in that socket is the last.
    ///
    /// - Returns: how many bytes the kernel took; below zero where it refused.
    package func pass(over socket: CInt, outOfBand: Bool = false) -> Int {
        // The layout is that of cmsg(3) on 64-bit Linux.
        var control: [UInt64] = [20, 0, 0]
        let sent = control.withUnsafeMutableBytes { control in
            control.storeBytes(of: CInt(SOL_SOCKET), toByteOffset: 8, as: CInt.self)
            control.storeBytes(of: CInt(SCM_RIGHTS), toByteOffset: 12, as: CInt.self)
            control.storeBytes(of: number, toByteOffset: 16, as: CInt.self)
            var byte: UInt8 = 0x20
            return withUnsafeMutablePointer(to: &byte) { byte in
                var vector = iovec(iov_base: byte, iov_len: 1)
                return withUnsafeMutablePointer(to: &vector) { vector in
                    var header = msghdr()
                    header.msg_iov = vector
                    header.msg_iovlen = 1
                    header.msg_control = control.baseAddress
                    header.msg_controllen = control.count
                    let flags = MSG_NOSIGNAL | (outOfBand ? MSG_OOB : 0)
                    return sendmsg(socket, &header, CInt(flags))
                }
            }
        }
        if sent > 0 { close(number) }
        return sent
    }

    /// Whether `work` comes to an end while the peer takes nothing. Where it does not, the peer hangs up after a while,
    /// so that a queue which waits for it goes on and the test can fail.
    package func lets(_ work: @escaping @Sendable () async -> Void) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await work()
                return true
            }
            group.addTask {
                try? await Task.sleep(for: .seconds(45))
                return false
            }
            let isOver = await group.next() ?? false
            group.cancelAll()
            hangUp()
            await group.waitForAll()
            return isOver
        }
    }
}
