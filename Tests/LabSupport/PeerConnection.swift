// SPDX-License-Identifier: Apache-2.0

/// A TCP connection as the kernel of one end sees it, from `ss -Htn`.
package struct PeerConnection: Hashable, Sendable {
    /// `ESTAB`, `CLOSE-WAIT`, `TIME-WAIT` and others, as ss(8) writes them.
    package let state: String
    /// Bytes that came and were not read.
    package let receiveQueue: Int
    /// Bytes that were written and not acknowledged.
    package let sendQueue: Int
    /// This end's address, without brackets and zone; an IPv4 address is written as one.
    package let address: String
    /// This end's port.
    package let port: UInt16
    /// The other end's address.
    package let peerAddress: String
    /// The other end's port.
    package let peerPort: UInt16

    /// A connection from a line of `ss -Htn`, `nil` for a line of another form.
    init?(line: Substring) {
        let fields = line.split(separator: " ")
        guard fields.count >= 5, let received = Int(fields[1]), let sent = Int(fields[2]),
            let local = Self.endpoint(fields[3]), let peer = Self.endpoint(fields[4])
        else { return nil }
        state = String(fields[0])
        receiveQueue = received
        sendQueue = sent
        (address, port) = local
        (peerAddress, peerPort) = peer
    }

    /// An address and a port from `192.0.2.2:1883`, `[2001:db8::1]:1883` or `[::ffff:192.0.2.2]:1883`.
    private static func endpoint(_ text: Substring) -> (String, UInt16)? {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var address = text[..<colon]
        if address.hasPrefix("["), address.hasSuffix("]") { address = address.dropFirst().dropLast() }
        if address.hasPrefix("::ffff:"), address.contains(".") { address = address.dropFirst("::ffff:".count) }
        return (String(address.prefix { $0 != "%" }), port)
    }
}

extension Namespace {
    /// The TCP connections of this machine, listening sockets left out.
    package func connections() async throws -> [PeerConnection] {
        let arguments = ["ss", "-Htn"]
        return try await command(arguments).split(separator: "\n").map { line in
            guard let connection = PeerConnection(line: line) else {
                throw LabError.unexpectedOutput(command: arguments.joined(separator: " "), output: String(line))
            }
            return connection
        }
    }
}
