// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// What a client does to a socket that it has or had, so that its last close waits: the agent's queue goes on.
@AgentQueue
@Suite(.timeLimit(.minutes(1))) struct SharedDescriptorTests {
    @Test func `a flow in which a lingering socket waits is closed without waiting for it`() async throws {
        let lingering = try LingeringSocket()
        let (local, remote) = (Endpoint(address: .loopback, port: 1), Endpoint(address: .loopback, port: 2))
        let adoption = Adoption(local: local, remote: remote)
        let flow = try Flow(
            adopting: OwnedDescriptor(lingering.inAnotherSocket()), adoption, .usual, owner: Listener())
        #expect(await lingering.lets { await onQueue { flow.close(aborting: false) } })
    }

    @Test(arguments: [false, true])
    func `a descriptor that a client sends over TLS holds up nobody`(outOfBand: Bool) async throws {
        let server = try SecureServer(.init(whenHeard: { session in session.send(Array("heard".utf8)) }))
        let surroundings = Surroundings(.loopback())
        let connection = try surroundings.connection(to: server)
        _ = await surroundings.entered(.ready)
        let client = Client(try connection.take())
        let (lingering, number) = (try LingeringSocket(), client.socket.number)
        let isHeard = await lingering.lets {
            // Where the kernel refuses descriptors there, they do no harm, and this one stays open: its close waits.
            let sent = lingering.pass(over: number, outOfBand: outOfBand)
            print("passing a descriptor over a relay, out of band \(outOfBand): \(sent), \(sent < 0 ? errno : 0)")
            expect(await Self.answer(to: "hello", from: client), is: "heard")
        }
        #expect(isHeard)
        connection.close()
    }

    private static func answer(to text: String, from client: Client) async -> String? {
        client.write(text) ? try? await client.readWhenItComes(5) : nil
    }
}
