// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink

/// The bytes of a request, ready to send. Built once by libnl and kept, since a watched target asks the same question
/// at every change of the network; only the sequence number is set anew.
struct NetlinkRequest: Sendable {
    /// Largest request built here: the headers and seven small attributes stay well below.
    private static let capacity = 256

    private var bytes: [UInt8]

    /// A request of a family's fixed header, then whatever `attributes` puts behind it.
    init<Header: BitwiseCopyable>(
        type: Int, flags: CInt, header: Header, attributes: (OpaquePointer) -> Void = { _ in }
    ) {
        guard let message = nlmsg_alloc_size(Self.capacity),
            let start = nlmsg_put(message, 0, 0, CInt(type), 0, flags)
        else {
            // libnl fails here only for want of memory, as Swift's own allocations would trap.
            preconditionFailure("no memory for a netlink request")
        }
        defer { nlmsg_free(message) }
        withUnsafeBytes(of: header) { bytes in
            let result = nlmsg_append(message, UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count, 4)
            // The headers are the kernel's structures, of at most 32 bytes.
            precondition(result == 0, "a netlink request outgrew its \(Self.capacity) bytes")
        }
        attributes(message)
        bytes = Array(UnsafeRawBufferPointer(start: start, count: Int(start.pointee.nlmsg_len)))
    }

    /// Appends the request under the number by which its answers will be told apart.
    func append(to batch: inout [UInt8], sequence: UInt32) {
        let start = batch.count
        batch += bytes
        batch.withUnsafeMutableBytes { batch in
            // nlmsg_seq stands behind the length (4), the type (2) and the flags (2).
            batch.storeBytes(of: sequence, toByteOffset: start + 8, as: UInt32.self)
        }
    }
}
