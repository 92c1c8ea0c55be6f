// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import Testing

/// A first uplink behind whose gateway nothing gets through, and a second one that works: Wi-Fi without Internet beside
/// a mobile network.
@Suite(.lab)
struct OtherUplinkStories {
    @Test(arguments: [Drop.fromHost, .toHost])
    func `nothing gets through on the first uplink: the flow goes by the second one, and back when the first works`(
        drop: Drop
    ) async throws {
        try await Story.tell { story in
            try await story.lab.drop(drop, on: .wan0)
            let before = story.now
            try await story.agent.client.redial(Story.connection)
            try await story.isReady(from: .wan1, after: before)
            let listed = try #require(try await story.agent.client.connections().first)
            #expect(listed.avoidedInterface == "wan0")
            let reason = "nothing gets through over wan0: uses another uplink"
            #expect(story.events.events.contains { $0.reason == reason }, "\(story.reasons(after: before))")
            // The kernel's verdict is what it was.
            expect(try await story.lab.uplinkToServer(.v4), is: .wan0)

            try await story.lab.restore(.wan0)
            let restored = story.now
            try await story.agent.client.redial(Story.connection)
            try await story.isReady(from: .wan0, after: restored)
            expect(try await story.agent.client.connections().first?.avoidedInterface, is: nil)
        }
    }

    @Test func `another way of the kernel's is tried at once`() async throws {
        try await Story.tell { story in
            try await story.lab.drop(.all, on: .wan0)
            let before = story.now
            try await story.agent.client.redial(Story.connection)
            try await story.isReady(from: .wan1, after: before)

            try await story.lab.restore(.wan0)
            let moved = story.now
            // Another Wi-Fi: the link goes and comes again.
            try await story.lab.takeDown(.wan0)
            try await story.lab.bringUp(.wan0)
            try await story.movesWithoutAGap(to: .wan0, after: moved)
        }
    }
}

extension Story {
    /// What was told since.
    fileprivate func reasons(after count: Int) -> [String] {
        events.events.dropFirst(count).compactMap(\.reason)
    }
}
