// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import DialtoneVarlink
import Testing

/// What `dialtone status` says of a connection whose server does not want it.
@Suite(.lab)
struct StatusStories {
    private static let server = LabNetwork.serverAddress(.v4)

    /// A server that ends each connection when it is so many seconds old.
    private static func impatient(port: UInt16, after seconds: Int) -> LabServer.Recipe {
        LabServer.Recipe(port: port) { machine in
            let process = try await machine.spawn([
                "python3", "-u", "-c",
                """
                import asyncio, sys
                async def client(reader, writer):
                    await asyncio.sleep(\(seconds))
                    writer.close()
                async def main():
                    server = await asyncio.start_server(client, "0.0.0.0", \(port))
                    print("open")
                    await server.serve_forever()
                asyncio.run(main())
                """,
            ])
            _ = try await process.line(containing: "open")
            return process
        }
    }

    private func dialtone(_ story: Story, _ arguments: String...) async throws -> String {
        let outcome = try await story.lab.host.outcome(
            [LabAgent.program("dialtone")] + arguments, environment: ["DIALTONE_SOCKET": story.agent.socket])
        #expect(outcome.exit == .status(0), "\(outcome)")
        return outcome.output
    }

    @Test(.server("mosquitto")) func `a connection without a login is connected, and not logged in`() async throws {
        try await Story.tell { story in
            let status = try await dialtone(story, "status")
            #expect(status.contains("connected, not logged in"), "\(status)")
            #expect(status.contains("needs an opening, or a client that takes it and logs in"), "\(status)")
            let one = try await dialtone(story, "status", Story.connection)
            #expect(one.contains("not logged in"), "\(one)")
            _ = try await story.agent.client.take(Story.connection)
            let taken = try await dialtone(story, "status")
            #expect(!taken.contains("not logged in"), "\(taken)")
            #expect(taken.contains("a client has the socket"), "\(taken)")
        }
    }

    @Test func `a server that ends each socket at the same age fails, and is said to`() async throws {
        // Older than what counts as stable, which is ten seconds at least.
        let recipe = Self.impatient(port: 1883, after: 11)
        try await Story.tell(by: recipe, { $0.backoff?.stableAfter = .seconds(10) }) { story in
            var end = try await story.becomes(.backingOff, after: 0)
            #expect(end.reason == "closed by the server")
            for _ in 0..<2 { end = try await story.becomes(.backingOff, after: story.now) }
            let reason = end.reason ?? "none"
            // The server counts from when it accepted, and the agent from when it was connected.
            let expected = /closed by the server 3 times in a row, each time after about 1[0-2] s, not logged in/
            #expect(reason.wholeMatch(of: expected) != nil, "\(reason)")
            #expect(end.cause == .closedByRemote)
            #expect(end.connection.attempt == 3, "the second and the third count")
            let history = try await dialtone(story, "history", Story.connection)
            #expect(history.contains("closed by the server 3 times in a row"), "\(history)")
        }
    }

    @Test func `a connection that is down has been so since its last socket, whatever was tried since`() async throws {
        try await Story.tell { story in
            let before = story.now
            try await story.server.stop()
            let first = try await story.becomes(.backingOff, after: before)
            let downSince = try #require(first.connection.downSince)
            // Each attempt is a state of its own.
            let later = try await story.events.event("the fourth attempt", after: before) {
                $0.connection.state == .backingOff && $0.connection.attempt >= 4
            }
            #expect(later.connection.since > downSince)
            #expect(abs((later.connection.downSince?.milliseconds ?? 0) - downSince.milliseconds) <= 2)
            #expect(later.connection.upSince == nil)
            let status = try await dialtone(story, "status")
            #expect(status.contains("down "), "\(status)")
            let fields = try await dialtone(story, "list", "--format", "downSince")
            // The same instant, by the wall clock as it is read for each answer: to the millisecond or its neighbour.
            let listed = try #require(Timestamp(fields))
            #expect(abs(listed.milliseconds - downSince.milliseconds) <= 2, "\(fields), \(downSince)")
        }
    }
}
