// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport

extension LabNetwork {
    /// Connects the host to a free port of the server, and returns both ends.
    func connect(from uplink: Uplink, _ family: Family) async throws -> (client: TCPSocket, server: TCPSocket) {
        let listener = try await server.run { try TCPSocket.listening(on: 0) }
        let port = try listener.port()
        let client = try await host.run {
            try TCPSocket.connected(to: LabNetwork.serverAddress(family), port, from: uplink.address(family))
        }
        return (client, try await server.run { try listener.accept() })
    }

    /// The uplink that the host's kernel would send a packet for the server by.
    func uplinkToServer(_ family: Family) async throws -> Uplink? {
        let words = try await host.ip("route get \(LabNetwork.serverAddress(family))").split(separator: " ")
        return words.firstIndex(of: "dev").flatMap { Uplink(rawValue: String(words[$0 + 1])) }
    }
}
