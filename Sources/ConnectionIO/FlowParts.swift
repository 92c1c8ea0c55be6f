// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// What an earlier process left of a flow in the store, told apart by what it is.
struct FlowParts: ~Copyable {
    /// The TCP socket.
    var socket: OwnedDescriptor?
    /// Of a flow with TLS: the end of the pair that clients get.
    var stream: OwnedDescriptor?
    /// Of a flow with TLS: where `dialtone-tls` is told of it.
    var channel: OwnedDescriptor?

    /// Takes over these descriptors; what is not of a flow is closed.
    init(_ descriptors: [CInt]) {
        for number in descriptors {
            let descriptor = OwnedDescriptor(number, sharedWith: OwnedDescriptor.somebody)
            switch (number.socketOption(SO_DOMAIN), number.socketOption(SO_TYPE)) {
            case (AF_UNIX, CInt(SOCK_SEQPACKET.rawValue)): channel = consume descriptor
            case (AF_UNIX, _) where descriptors.count > 1: stream = consume descriptor
            case (_, CInt(SOCK_STREAM.rawValue)): socket = consume descriptor
            default: break
            }
        }
    }
}
