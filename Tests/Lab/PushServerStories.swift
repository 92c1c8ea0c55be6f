// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// Push through the stand-ins of the servers that speak WebSocket, by both agents, to an app that decrypts.
@Suite(
    "Push over WebSocket", .lab, .server("dbus-daemon"), .timeLimit(.minutes(10)),
    .enabled(if: PyPI.python != nil, "scripts/python-varlink could not install websockets and pywebpush"))
struct PushServerStories {
    private static let app = "org.example.Phone"
    private static let delivered = PushStage.Sent(status: "201", wasThere: true)

    /// What autopush's stand-in says of itself.
    private struct Autopush: Decodable {
        struct Ack: Decodable { let code: Int }
        let users: Int
        let stored: Int
        let unacked: Int
        let acks: [Ack]

        init(_ stage: PushStage, _ command: String = "state") async throws {
            self = try JSONDecoder().decode(Self.self, from: Data(try await stage.control(command).utf8))
        }
    }

    @Test func `a message of autopush is acknowledged and comes once, also after both agents were killed`()
        async throws
    {
        try await PushStage.set([(Self.app, .phone)], at: .autopush) { stage in
            let token = try await stage.registerPhone(Self.app)
            try await stage.isParked()
            // The server's 201 says that it keeps the message.
            expect(try await stage.send(1...1, to: token, of: Self.app).map(\.status), is: ["201"])
            try await stage.hasTaken(1, app: Self.app)
            try await acknowledged(1, on: stage)
            try await stage.isParked()
            try await stage.killBoth {
                expect(try await stage.send(2...4, to: token, of: Self.app).map(\.status), is: ["201", "201", "201"])
            }
            try await stage.hasTaken(4, app: Self.app)
            try await acknowledged(4, on: stage)
            try await stage.killBoth()
            try await stage.isLoggedIn()
            expect(try await stage.send(5...5, to: token, of: Self.app).map(\.status), is: ["201"])
            try await stage.hasTaken(5, app: Self.app)
            expect(try stage.messages(of: Self.app), is: (1...5).map { "message \($0)" })
            // Told at each start of the app, and never another one.
            expect(try Set(stage.told(to: Self.app).compactMap(\.endpoint)).count, is: 1)
        }
    }

    /// Waits until the server has so many messages acknowledged, and keeps none.
    private func acknowledged(_ count: Int, on stage: PushStage) async throws {
        var seen: Autopush?
        try await eventually("\(count) acknowledgements\n\(stage.log)") {
            let state = try await Autopush(stage)
            seen = state
            return state.acks.count >= count && state.unacked == 0 && state.stored == 0
        }
        // 100: delivered.
        #expect(seen?.acks.map(\.code) == Array(repeating: 100, count: count))
    }

    @Test func `an app gets its new endpoint when autopush forgot the machine, and the old one is over`() async throws {
        try await PushStage.set([(Self.app, .phone)], at: .autopush) { stage in
            let old = try await stage.registerPhone(Self.app)
            try await stage.isParked()
            let before = try stage.told(to: Self.app).count
            _ = try await Autopush(stage, "forget")
            let told = try await stage.next(after: before, "a new endpoint", of: Self.app) {
                $0.method == "NewEndpoint"
            }
            #expect(told.token != old)
            expect(try await stage.send(1...1, "lost", to: old, of: Self.app).map(\.status), is: ["410"])
            expect(try await stage.send(1...1, to: told.token, of: Self.app).map(\.status), is: ["201"])
            try await stage.hasTaken(1, app: Self.app)
            expect(try stage.messages(of: Self.app), is: ["message 1"])
            let list = try await stage.dialtone("list")
            #expect(list.lines.count { $0.contains(Self.app) } == 1, "\(list)")
        }
    }

    @Test func `a message of ntfy comes once, also after both agents were killed`() async throws {
        try await PushStage.set([(Self.app, .phone)], at: .ntfy) { stage in
            // The stand-in has two ports, and the endpoint the one where it speaks WebSocket.
            let ports = (":\(PushStage.StandIn.socketPort)/", ":\(PushStage.StandIn.webPort)/")
            let token = try await stage.registerPhone(Self.app).replacing(ports.0, with: ports.1)
            try await stage.isParked()
            expect(try await stage.send(1...2, to: token, of: Self.app).map(\.status), is: ["200", "200"])
            try await stage.hasTaken(2, app: Self.app)
            try await stage.isParked()
            try await stage.killBoth {
                expect(try await stage.send(3...5, to: token, of: Self.app).map(\.status), is: ["200", "200", "200"])
            }
            try await stage.hasTaken(5, app: Self.app)
            try await stage.killBoth()
            try await stage.isLoggedIn()
            expect(try await stage.send(6...6, to: token, of: Self.app).map(\.status), is: ["200"])
            try await stage.hasTaken(6, app: Self.app)
            expect(try stage.messages(of: Self.app), is: (1...6).map { "message \($0)" })
        }
    }
}
