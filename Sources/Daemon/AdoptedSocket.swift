// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import NetworkPath
internal import Platform
internal import Supervisor

/// The ends of a socket that a client brought to be supervised, and that was found fit for it: a connected stream
/// socket of TCP, or of this machine (`AF_UNIX`).
struct AdoptedSocket {
    let local: Endpoint
    let remote: Endpoint
    /// Where a socket of this machine leads, as a URL; `nil` for TCP.
    let localURL: String?

    /// Looks at what came.
    ///
    /// - Parameter number: its descriptor, which stays whose it was.
    /// - Throws: why it cannot be supervised, for the end of a sentence.
    init(_ number: CInt) throws(Unfit) {
        guard let kind = Self.option(number, SO_TYPE) else { throw Unfit("it is not a socket") }
        let isOfThisMachine = Self.option(number, SO_DOMAIN) == AF_UNIX
        guard kind == CInt(SOCK_STREAM.rawValue),
            isOfThisMachine || Self.option(number, SO_PROTOCOL) == CInt(IPPROTO_TCP)
        else { throw Unfit("it is neither a TCP socket nor a Unix stream socket") }
        guard Self.option(number, SO_ACCEPTCONN) == 0 else { throw Unfit("it listens, and is connected to nobody") }
        if isOfThisMachine {
            guard let peer = UnixAddress(peerOf: number) else { throw Unfit("it is not connected") }
            (local, remote, localURL) = (.none, .none, "\(Remote.Scheme.unix.rawValue):\(peer.text)")
        } else {
            guard let local = SocketAddress(localOf: number), let remote = SocketAddress(peerOf: number),
                let localAddress = local.address, let remoteAddress = remote.address
            else { throw Unfit("it is not connected") }
            self.local = Endpoint(address: localAddress.unmapped, port: local.port)
            self.remote = Endpoint(address: remoteAddress.unmapped, port: remote.port)
            localURL = nil
        }
        Self.waitForNothing(number)
    }

    struct Unfit: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// Has no close of the socket wait until its peer has taken everything, whatever its client wanted (`SO_LINGER`).
    private static func waitForNothing(_ number: CInt) {
        var none = linger(l_onoff: 0, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout.size(ofValue: none)))
    }

    private static func option(_ number: CInt, _ name: CInt) -> CInt? {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(number, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}

/// An address of this machine alone (unix(7)).
private struct UnixAddress {
    /// Its path; with `@` in front a name in no file system, and empty where it has none. What is no printable ASCII is
    /// written as in a URL.
    let text: String

    /// What a socket is connected to; `nil` where it is connected to nothing.
    init?(peerOf number: CInt) {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        let result = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(number, $0, &length) }
        }
        guard result == 0 else { return nil }
        let bytes = withUnsafeBytes(of: &address.sun_path) { path in
            Array(path.prefix(max(Int(length) - MemoryLayout<sa_family_t>.size, 0)))
        }
        if bytes.first == 0 {
            // The whole length counts there, zeros included.
            text = bytes.count > 1 ? "@" + Self.escaped(bytes[1...]) : ""
        } else {
            text = Self.escaped(bytes.prefix { $0 != 0 })
        }
    }

    private static func escaped(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.map { byte in
            if (0x21...0x7E).contains(byte), byte != UInt8(ascii: "%") { return String(UnicodeScalar(byte)) }
            let digits = String(byte, radix: 16, uppercase: true)
            return "%" + (digits.count < 2 ? "0" : "") + digits
        }.joined()
    }
}
