// SPDX-License-Identifier: Apache-2.0

internal import CNetlink

/// The bytes of a request, ready to send. Built once by libnl and kept, since a watched target asks the same question at
/// every change of the network; only the sequence number is set anew.
struct NetlinkRequest: Sendable {
    /// Largest request built here: the headers and seven small attributes stay well below.
    private static let capacity = 256

    private var bytes: [UInt8]

    /// A request of a family's fixed header, then whatever `attributes` puts behind it.
    init<Header: BitwiseCopyable>(
        type: Int, flags: CInt, header: Header, attributes: (OpaquePointer) -> Void = { _ in }
    ) {
        // libnl fails here only for want of memory, as Swift's own allocations would trap.
        guard let message = nlmsg_alloc_size(Self.capacity),
            let start = nlmsg_put(message, 0, 0, CInt(type), 0, flags)
        else { preconditionFailure("no memory for a netlink request") }
        defer { nlmsg_free(message) }
        withUnsafeBytes(of: header) { bytes in
            let result = nlmsg_append(message, UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count, 4)
            precondition(result == 0, "a netlink request outgrew its \(Self.capacity) bytes")
        }
        attributes(message)
        bytes = Array(UnsafeRawBufferPointer(start: start, count: Int(start.pointee.nlmsg_len)))
    }

    /// The number by which answers are told apart.
    mutating func setSequence(_ sequence: UInt32) {
        bytes.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: sequence, toByteOffset: 8, as: UInt32.self)
        }
    }

    /// Calls `body` with the request's bytes.
    func withBytes<Failure: Error>(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Void) throws(Failure) {
        var result: Result<Void, Failure> = .success(())
        bytes.withUnsafeBytes { bytes in
            do throws(Failure) { try body(bytes) } catch { result = .failure(error) }
        }
        try result.get()
    }

    /// The request's bytes, for a batch.
    var contents: [UInt8] { bytes }
}
