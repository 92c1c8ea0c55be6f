// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import Glibc
import Testing

@Suite("A real broker in the Lab", .lab)
struct BrokerTests {
    @Test(arguments: Family.allCases)
    func `mosquitto carries a message from the server's side to the host`(family: Family) async throws {
        try await LabNetwork.with { lab in
            let broker = try await LabServer.start(.mosquitto(), on: lab.server)
            let subscriber = try await lab.host.spawn(
                ["mosquitto_sub", "-h", LabNetwork.serverAddress(family), "-t", "bell", "-i", "door"])
            _ = try await broker.log.line(containing: "Sending SUBACK to door")
            try await lab.server.command(["mosquitto_pub", "-h", "127.0.0.1", "-t", "bell", "-m", "ring"])
            _ = try await subscriber.line(containing: "ring")
            let peers = try await lab.server.connections().filter { $0.port == broker.port && $0.state == "ESTAB" }
            #expect(peers.map(\.peerAddress) == [Uplink.wan0.address(family)])
        }
    }

    @Test func `a broker that was stopped, killed and started again accepts again`() async throws {
        try await LabNetwork.with { lab in
            let broker = try await LabServer.start(.mosquitto(), on: lab.server)
            let first = broker.log
            try await broker.restart()
            expect(try await first.exit(), is: .status(0))
            _ = try await lab.connection(to: broker)

            let second = broker.log
            try await broker.kill()
            expect(try await second.exit(), is: .signal(SIGKILL))
            await #expect(throws: (any Error).self) { try await lab.connection(to: broker) }

            try await broker.restart()
            _ = try await lab.connection(to: broker)
        }
    }
}

extension LabNetwork {
    /// A connection from the host to the broker.
    fileprivate func connection(to broker: LabServer) async throws -> TCPSocket {
        try await host.run { [port = broker.port] in
            try TCPSocket.connected(to: LabNetwork.serverAddress(.v4), port)
        }
    }
}
