// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import Glibc

/// The ends of a socket that a client brought to be supervised, and that was found fit for it: a connected one of TCP.
struct AdoptedSocket: Sendable {
    let local: Endpoint
    let remote: Endpoint

    /// Looks at what came.
    ///
    /// - Parameters:
    ///   - number: its descriptor, which stays whose it was.
    ///   - user: who sent it, and can make the kernel keep each look waiting.
    /// - Throws: why it cannot be supervised, for the end of a sentence.
    @AgentQueue
    static func look(at number: CInt, of user: UInt32) throws(Unfit) -> AdoptedSocket {
        let busy = Result<AdoptedSocket, Unfit>.failure(Unfit("somebody keeps it busy"))
        return try UserThreads.answer(for: user, otherwise: busy) {
            Result { () throws(Unfit) in try AdoptedSocket(number) }
        }.get()
    }

    init(_ number: CInt) throws(Unfit) {
        guard let kind = number.socketOption(SO_TYPE) else { throw Unfit("it is not a socket") }
        guard kind == CInt(SOCK_STREAM.rawValue), number.socketOption(SO_PROTOCOL) == CInt(IPPROTO_TCP) else {
            throw Unfit("it is not a TCP socket")
        }
        guard number.socketOption(SO_ACCEPTCONN) == 0 else { throw Unfit("it listens, and is connected to nobody") }
        guard let local = SocketAddress(localOf: number), let remote = SocketAddress(peerOf: number),
            let localAddress = local.address, let remoteAddress = remote.address
        else { throw Unfit("it is not connected") }
        self.local = Endpoint(address: localAddress.unmapped, port: local.port)
        self.remote = Endpoint(address: remoteAddress.unmapped, port: remote.port)
    }

    struct Unfit: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }
}
