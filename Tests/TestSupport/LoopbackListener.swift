// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath
package import DialtonePlatform
internal import Glibc

extension IPAddress {
    /// 127.0.0.1.
    package static let loopback = IPAddress(v4: 0x7F00_0001)
    /// ::1.
    package static let loopbackV6 = IPAddress(v6: 1)
}

/// A port of the loopback interface, of either family, worked by the test step by step.
package final class LoopbackListener: Sendable {
    private let socket: OwnedDescriptor
    package let address: IPAddress
    package var number: CInt { socket.number }
    /// Of the kernel's choice.
    package let port: UInt16

    /// - Parameters:
    ///   - backlog: how many clients it takes that were not accepted; `nil` to hold the port alone, which refuses them.
    ///   - savesSYN: whether the first packet of each connection is kept (tcp(7), `TCP_SAVE_SYN`).
    package init(
        _ address: IPAddress = .loopback, backlog: CInt? = 128, savesSYN: Bool = false
    ) throws(SystemError) {
        self.address = address
        socket = try Self.socket(address.family)
        let number = socket.number
        var isOn: CInt = savesSYN ? 1 : 0
        setsockopt(number, CInt(IPPROTO_TCP), TCP_SAVE_SYN, &isOn, socklen_t(MemoryLayout<CInt>.size))
        try retryingInterrupts("binding") { SocketAddress(address, port: 0).withPointer { bind(number, $0, $1) } }
        if let backlog { try retryingInterrupts("listening") { listen(number, backlog) } }
        guard let own = SocketAddress(localOf: number) else { throw SystemError.last("asking for the port") }
        port = own.port
    }

    private static func socket(_ family: IPAddress.Family) throws(SystemError) -> OwnedDescriptor {
        let domain = family == .v4 ? AF_INET : AF_INET6
        let number = try retryingInterrupts("making a socket") {
            Glibc.socket(domain, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        }
        return OwnedDescriptor(number)
    }

    private func waits(_ limit: CInt) -> Bool {
        var entry = pollfd(fd: socket.number, events: CShort(POLLIN), revents: 0)
        return poll(&entry, 1, limit) == 1
    }

    /// Whether ``accept()`` returns at once.
    package var hasClient: Bool { waits(0) }

    /// The next client. The limit only ends a test that has failed.
    package func accept() throws(SystemError) -> OwnedDescriptor {
        guard waits(60_000) else { throw SystemError("waiting for a client", code: ETIMEDOUT) }
        return OwnedDescriptor(try retryingInterrupts("accepting") { Glibc.accept(socket.number, nil, nil) })
    }

    /// A client, connected.
    package func connect() throws(SystemError) -> OwnedDescriptor {
        let client = try Self.socket(address.family)
        let (number, remote) = (client.number, SocketAddress(address, port: port))
        try retryingInterrupts("connecting") { remote.withPointer { Glibc.connect(number, $0, $1) } }
        return client
    }

    /// From now on the port refuses.
    package func refuse() { _ = shutdown(socket.number, CInt(SHUT_RDWR)) }

    /// The listening socket once more.
    package func duplicate() throws(SystemError) -> OwnedDescriptor { try socket.duplicate() }
}

/// One end of a flow.
package final class End: Sendable {
    private let socket: OwnedDescriptor

    package init(_ socket: consuming OwnedDescriptor) { self.socket = socket }

    package var number: CInt { socket.number }

    /// The next bytes, up to so many; waits for the first.
    package func read(_ count: Int) -> String {
        var buffer = [UInt8](repeating: 0, count: count)
        let got = recv(number, &buffer, count, 0)
        return got < 0 ? "error \(errno)" : String(decoding: buffer.prefix(got), as: UTF8.self)
    }

    package func hangUp() { shutdown(number, CInt(SHUT_RDWR)) }

    @discardableResult
    package func write(_ text: String) -> Bool {
        send(number, text, text.utf8.count, CInt(MSG_NOSIGNAL)) == text.utf8.count
    }

    /// Whether nobody has ended the stream.
    package var isConnected: Bool {
        var byte: UInt8 = 0
        return recv(number, &byte, 1, CInt(MSG_PEEK | MSG_DONTWAIT)) < 0 && errno == EAGAIN
    }
}
