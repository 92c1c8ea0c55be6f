// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// Push through prosody's own service, to apps that the session bus starts.
@Suite("Push", .lab, .server("prosody"), .server("dbus-daemon"))
struct PushStories {
    private static let app = "org.example.Phone"

    @Test func `an app registers, and is started for a message`() async throws {
        try await PushStage.set([Self.app]) { stage in
            try await stage.isLoggedIn()
            let endpoint = try await stage.register(Self.app)
            expect(try await stage.post(["hello"], to: endpoint), is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["hello"])
            let told = try stage.told(to: Self.app)
            #expect(told.first?.process != told.last?.process, "\(told)")
            let list = try await stage.dialtone("list")
            #expect(list.output.contains(Self.app) && list.output.contains("registered"), "\(list)")
            expect(try await stage.dialtone("test", Self.app).output, is: "The app took it.")
        }
    }

    @Test func `each message is there once and in order, whatever is killed and pulled meanwhile`() async throws {
        try await PushStage.set([Self.app]) { stage in
            try await stage.isLoggedIn()
            let endpoint = try await stage.register(Self.app)
            let bodies = (1...40).map { "message \($0)" }
            async let statuses = stage.post(bodies, to: endpoint)
            for outage in 0..<4 {
                // When so many have come: it happens between any two. The service waits two minutes for the answer to
                // a message of a session that it lost, and the sender with it.
                let reached = (outage + 1) * bodies.count / 6
                try await stage.hasTaken(reached, app: Self.app)
                switch outage {
                case 0: try await stage.killSession()
                case 1: try await stage.killAgent()
                case 2: try await stage.lab.takeDown(.wan0)
                default: try await stage.restartBus()
                }
            }
            let seen = try await statuses
            let messages = try stage.messages(of: Self.app)
            var last = 0
            for message in messages {
                let number = bodies.firstIndex(of: message) ?? -1
                #expect(number >= last, "\(message) came after message \(last + 1)")
                last = number
            }
            #expect(Set(messages).count == messages.count, "\(messages)")
            for (body, status) in zip(bodies, seen) where status == "201" {
                #expect(messages.contains(body), "\(body): the sender saw 201")
            }
        }
    }

    @Test func `a message that an app fails on is set aside, and the next one comes`() async throws {
        try await PushStage.set([Self.app]) { stage in
            try await stage.isLoggedIn()
            let endpoint = try await stage.register(Self.app)
            stage.misbehave(Self.app, by: .refuse)
            async let statuses = stage.post(["poison"], to: endpoint)
            try await eventually("a try that failed\n\(stage.log)") {
                try await stage.dialtone("status", "--json").output.contains("\"failedTries\":1")
            }
            let list = try await stage.dialtone("list")
            #expect(list.output.contains("the app did not take it"), "\(list)")
            stage.misbehave(Self.app, by: .refuse, false)
            expect(try await statuses, is: ["201"])
            expect(try stage.messages(of: Self.app), is: ["poison"])
        }
    }
}
