// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtonePlatform
internal import Glibc

/// One rtnetlink socket: libnl opens and joins it; receiving is our own.
///
/// libnl's receive path turns `ENOBUFS` into `NLE_NOMEM`, the errors of a route lookup into `NLE_FAILURE`, and
/// allocates for each message. Here a message is read into one buffer and the kernel's own numbers are kept.
final class NetlinkSocket {
    /// What one `recvmsg` brought.
    enum Reception {
        /// This many bytes of messages from the kernel, at the start of the buffer.
        case messages(UnsafeRawBufferPointer)
        /// The kernel dropped messages for want of room in the socket's buffer. It says so once and goes on working.
        case overrun
        /// Nothing more is queued.
        case empty
    }

    /// Room for one datagram. The kernel fills at most 32 KiB into one part of a dump (`NLMSG_GOODSIZE` and the
    /// `min_dump_alloc` of links with many virtual functions), and libnl's own default is a page.
    private static let bufferSize = 64 * 1024

    private let handle: OpaquePointer
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 8)
    private var sequence: UInt32 = 0
    /// Where what passes is recorded, and as which channel; set before the first message.
    var tap: (recorder: Recorder, channel: RecordingChannel)?

    /// Opens a socket of the network namespace that the calling thread is in, and joins `groups`.
    ///
    /// - Parameter receiveBuffer: bytes the kernel may queue; `nil` for the system's default. Without `CAP_NET_ADMIN`
    ///   it is cut to `net.core.rmem_max`.
    init(groups: [rtnetlink_groups] = [], receiveBuffer: Int? = nil) throws(SystemError) {
        guard let handle = nl_socket_alloc() else { throw SystemError("allocating a netlink socket", code: ENOMEM) }
        self.handle = handle
        let result = nl_connect(handle, NETLINK_ROUTE)
        if result < 0 { throw .last("opening a netlink socket (\(String(cString: nl_geterror(result))))") }
        set(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        // Ignored by kernels before 4.20, which then dump more than was asked for; what is not wanted is skipped.
        set(SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1)
        if let receiveBuffer, !set(SOL_SOCKET, SO_RCVBUFFORCE, CInt(receiveBuffer)) {
            set(SOL_SOCKET, SO_RCVBUF, CInt(receiveBuffer))
        }
        for group in groups { try join(group) }
    }

    /// Has the kernel send what it tells in `group`.
    func join(_ group: rtnetlink_groups) throws(SystemError) {
        if set(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, CInt(group.rawValue)) { return }
        // Next-hop objects came with 5.3; an older kernel has no such group and nothing to tell in it.
        if group == RTNLGRP_NEXTHOP, errno == EINVAL { return }
        throw .last("joining netlink group \(group.rawValue)")
    }

    /// Has the kernel send no more of what it tells in `group`.
    func leave(_ group: rtnetlink_groups) {
        set(SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, CInt(group.rawValue))
    }

    deinit {
        nl_socket_free(handle)
        buffer.deallocate()
    }

    /// The descriptor, for a Dispatch source.
    var descriptor: CInt { nl_socket_get_fd(handle) }

    @discardableResult
    private func set(_ level: CInt, _ option: CInt, _ value: CInt) -> Bool {
        descriptor.setSocketOption(option, at: level, to: value)
    }

    /// A number for the next request, never zero (the kernel's own notices carry zero).
    func nextSequence() -> UInt32 {
        sequence = sequence == .max ? 1 : sequence + 1
        return sequence
    }

    /// Sends `request` and returns the number that its answers carry.
    func send(_ request: NetlinkRequest) throws(SystemError) -> UInt32 {
        let sequence = nextSequence()
        var bytes: [UInt8] = []
        request.append(to: &bytes, sequence: sequence)
        try send(bytes)
        return sequence
    }

    /// Sends one or several requests, which lie end to end in `bytes`, in one system call.
    func send(_ bytes: [UInt8]) throws(SystemError) {
        if let tap { tap.recorder.sent(bytes, on: tap.channel) }
        var kernel = sockaddr_nl()
        kernel.nl_family = sa_family_t(AF_NETLINK)
        let descriptor = descriptor
        try retryingInterrupts("asking the kernel over netlink") {
            withUnsafePointer(to: &kernel) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    sendto(descriptor, bytes, bytes.count, 0, address, socklen_t(MemoryLayout<sockaddr_nl>.size))
                }
            }
        }
    }

    /// Reads one datagram without waiting. The bytes are valid until the next call.
    ///
    /// Waiting would gain nothing after a request either: the kernel queues the answers to one before `sendto` returns,
    /// and the next part of a dump before `recvmsg` hands out the last (`netlink_recvmsg` in net/netlink/af_netlink.c).
    func receive() throws(SystemError) -> Reception {
        let reception = try read()
        if let tap { tap.recorder.took(reception, on: tap.channel) }
        return reception
    }

    private func read() throws(SystemError) -> Reception {
        while true {
            var sender = sockaddr_nl()
            var vector = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
            let count = withUnsafeMutablePointer(to: &sender) { sender in
                withUnsafeMutablePointer(to: &vector) { vector in
                    var header = msghdr()
                    header.msg_name = UnsafeMutableRawPointer(sender)
                    header.msg_namelen = socklen_t(MemoryLayout<sockaddr_nl>.size)
                    header.msg_iov = vector
                    header.msg_iovlen = 1
                    return recvmsg(descriptor, &header, CInt(MSG_DONTWAIT | MSG_TRUNC))
                }
            }
            if count < 0 {
                switch errno {
                case EINTR: continue
                case EAGAIN: return .empty
                case ENOBUFS: return .overrun
                case let code: throw SystemError("reading from the kernel's netlink socket", code: code)
                }
            }
            // Any process may send to a netlink socket's address; only port 0 is the kernel (netlink(7)).
            guard sender.nl_pid == 0 else { continue }
            // A datagram larger than the buffer lost its tail, which is what an overrun is.
            guard count <= buffer.count else { return .overrun }
            return .messages(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }
}
