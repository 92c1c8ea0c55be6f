// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePush
import DialtoneTestSupport
import Foundation
import Testing

/// The connector with a distributor that is GLib's and Python's.
@Suite(
    "Connector", .enabled(if: DistributorBus.isThere, "there is no dbus-daemon, gdbus or python3-gi here"),
    .timeLimit(.minutes(3)))
struct ConnectorTests {
    /// The message of RFC 8291's appendix A, in base64.
    private static let message = """
        DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI/c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3\
        jl7A/yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj/Qulcy4a+fN
        """
    private static let plaintext = "When I grow up, I want to be a watermelon"

    /// An app that was registered before, and is again.
    private func registered(completes: Bool = true) async throws -> (DistributorBus, App) {
        let bus = try await DistributorBus()
        try bus.keepRegistration()
        let app = App(bus.registry(), completes: completes)
        app.registry.desiredPushTypes = [.voIP]
        try await eventually("it is registered") { app.tokens.count == 1 }
        return (bus, app)
    }

    @Test func `an app is registered at a distributor that the bus starts, and keeps its token`() async throws {
        let bus = try await DistributorBus()
        let key = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
        var app: App? = App(bus.registry(serverKey: key))
        app?.registry.desiredPushTypes = [.voIP, .standard]
        try await eventually("both are registered") { app?.tokens.count == 2 }
        let first = app?.tokens ?? [:]
        let credentials = try #require(first[.voIP])
        #expect(credentials.endpoint.hasPrefix("https://push.example.net/"))
        #expect(app?.registry.pushToken(for: .voIP) == credentials.token)
        #expect(credentials.token.contains("\"keys\":{\"p256dh\":\"B"))

        let state = try await bus.distributor("State")
        for part in [
            "\"org.dialtone.type\": \"voip\"", "\"org.dialtone.type\": \"standard\"",
            "\"service\": \"\(DistributorBus.app)\"",
            "\"vapid\": \"\(key)\"", "\"description\": \"Calls\"",
        ] {
            #expect(state.contains(part), "\(part) in \(state)")
        }
        var status = stat()
        try #require(stat(bus.keptFile, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)

        app = nil
        let next = App(bus.registry())
        next.registry.desiredPushTypes = [.voIP, .standard]
        try await eventually("both are registered again") { next.tokens.count == 2 }
        #expect(next.tokens == first)
    }

    @Test func `a push is acknowledged when the app has handled it, and not before`() async throws {
        let (bus, app) = try await registered(completes: false)

        async let answer = bus.distributor("Send", "kept", Self.message, "m1")
        try await eventually("the push comes") { app.pushes.count == 1 }
        #expect(app.pushes.map(\.text) == [Self.plaintext])
        #expect(app.pushes.map(\.identifier) == ["m1"])
        #expect(app.pushes.map(\.type) == [.voIP])
        // The distributor answers this after all that came to it before.
        expect(try await bus.distributor("State")) { $0.contains("\"pending\": 1") }
        app.completeAll()
        expect(try await answer, is: #"{"id": "m1"}"#)
    }

    @Test func `a push that the app lets go of is told to be unhandled`() async throws {
        let (bus, app) = try await registered(completes: false)
        async let answer = bus.distributor("Send", "kept", Self.message, "m1")
        try await eventually("the push comes") { app.pushes.count == 1 }
        app.forgetAll()
        expect(try await answer, is: "org.freedesktop.DBus.Error.Failed")
    }

    @Test func `what cannot be read is acknowledged, and told to the app`() async throws {
        let (bus, app) = try await registered()
        for (message, id) in [
            ("aGVsbG8=", "short"), ("", "empty"), (Self.message.replacing("s3oZ", with: "s3oA"), "x"),
        ] {
            expect(try await bus.distributor("Send", "kept", message, id), is: "{\"id\": \"\(id)\"}")
        }
        try await eventually("the app is told of all") { app.errors.count == 3 }
        for error in app.errors {
            guard case .unreadable(.voIP, _) = error else {
                Issue.record("\(error)")
                continue
            }
        }
        expect(app.pushes.count, is: 0)
    }

    @Test func `what the specification says to ignore acknowledges nothing`() async throws {
        let (bus, app) = try await registered()
        let before = app.tokens
        expect(try await bus.distributor("Send", "unknown", Self.message, "m1"), is: "{}")
        for endpoint in ["not_a_url", "https://a b", "https://" + String(repeating: "x", count: 1000), ""] {
            let arguments = "{'token': 'kept', 'endpoint': '\(endpoint)'}"
            expect(try await bus.distributor("Tell", "NewEndpoint", arguments), is: "{}")
        }
        expect(try await bus.distributor("Tell", "Unregistered", "{'token': 'unknown'}"), is: "{}")
        expect(try await bus.distributor("Tell", "Message", "{'token': 'kept', 'message': 'text'}"), is: "{}")
        expect(try await bus.distributor("Tell", "NewEndpoint", "{}"), is: "{}")
        // A push without a name is the app's, too.
        expect(try await bus.distributor("Send", "kept", Self.message, ""), is: "{}")
        #expect(app.pushes.map(\.identifier) == [nil])
        #expect(app.tokens == before)
        #expect(app.ended.isEmpty && app.errors.isEmpty, "\(app.errors)")
    }

    @Test func `a new endpoint is told, and the same one again is not`() async throws {
        let (bus, app) = try await registered()
        for _ in 0..<2 {
            try await bus.distributor("Tell", "NewEndpoint", "{'token': 'kept', 'endpoint': 'https://b.example/1'}")
        }
        try await eventually("it is told") { app.tokens[.voIP]?.endpoint == "https://b.example/1" }
        expect(app.updates, is: 2)
    }

    @Test func `calls that count as other pushes are told once`() async throws {
        let (bus, app) = try await registered()
        for (type, told) in [("voip", 0), ("standard", 1), ("standard", 1), ("voip", 1), ("standard", 2)] {
            let arguments = "{'token': 'kept', 'endpoint': 'https://b.example/1', 'org.dialtone.type': '\(type)'}"
            try await bus.distributor("Tell", "NewEndpoint", arguments)
            // The delegate is called on a queue of its own.
            try await eventually("\(told) told") { app.errors.count >= told }
            #expect(app.errors == Array(repeating: .demoted, count: told), "\(type)")
        }
    }

    @Test func `an end is told, and an app that still wants pushes gets another token`() async throws {
        let (bus, app) = try await registered()
        let first = app.tokens[.voIP]
        try await bus.distributor("Tell", "Unregistered", "{'token': 'kept'}")
        try await eventually("the app is told") { app.ended == [.voIP] }
        #expect(app.registry.pushToken(for: .voIP) == nil)
        expect(try String(contentsOfFile: bus.keptFile, encoding: .utf8), is: "dialtone-push 1\n")

        app.registry.desiredPushTypes = [.voIP]
        try await eventually("it is registered anew") { app.tokens[.voIP].map { $0 != first } == true }
        #expect(app.tokens[.voIP]?.publicKey != first?.publicKey)
        let second = try await bus.registeredTokens().subtracting(["kept"])
        #expect(second.count == 1)
        app.registry.desiredPushTypes = []
        try await eventually("the distributor is told") { try await bus.registeredTokens() == ["kept"] }
        #expect(app.registry.pushToken(for: .voIP) == nil)
    }

    @Test func `a distributor that comes later or restarts is registered at`() async throws {
        let bus = try await DistributorBus(hasDistributor: false)
        let app = App(bus.registry())
        app.registry.desiredPushTypes = [.standard]
        try await eventually("there is none") { app.errors == [.noDistributor] }
        try await bus.installDistributor()
        expect(try await bus.startDistributor(), is: true)
        try await eventually("it is registered") { app.tokens.count == 1 }

        try await bus.distributor("Quit")
        // Not the one that is about to quit.
        try await eventually("another is started") { try await bus.startDistributor() }
        try await eventually("it is registered again") {
            try await bus.distributor("State").contains("\"org.dialtone.type\": \"standard\"")
        }
        expect(app.updates, is: 1)
    }

    @Test(arguments: [
        ("VAPID_REQUIRED", PushError.registrationFailed(.voIP, .vapidRequired)),
        ("ACTION_REQUIRED", .registrationFailed(.voIP, .actionRequired)),
        ("NETWORK", .registrationFailed(.voIP, .network)),
        (
            "WHIM",
            .distributorFailed(name: DistributorBus.distributor, reason: "its answer is not the specification's")
        ),
    ])
    func `a refusal is told`(reason: String, error: PushError) async throws {
        let bus = try await DistributorBus()
        bus.failRegistrations(reason)
        let app = App(bus.registry())
        app.registry.desiredPushTypes = [.voIP]
        try await eventually("the app is told") { !app.errors.isEmpty }
        #expect(app.errors == [error])
    }

    @Test func `a second process of the app is told that the first gets the pushes`() async throws {
        let bus = try await DistributorBus()
        let app = App(bus.registry())
        app.registry.desiredPushTypes = [.voIP]
        try await eventually("it is registered") { app.tokens.count == 1 }
        let other = App(bus.registry())
        other.registry.desiredPushTypes = [.voIP]
        try await eventually("the other is told") { other.errors == [.nameTaken(name: DistributorBus.app)] }
    }

    @Test func `the connector says what it is, as distributors ask`() async throws {
        let bus = try await DistributorBus()
        let app = App(bus.registry())
        app.registry.desiredPushTypes = [.voIP]
        try await eventually("it is registered") { app.tokens.count == 1 }
        let seen = await bus.gdbus([
            "introspect", "--address", bus.address, "--dest", DistributorBus.app, "--object-path",
            "/org/unifiedpush/Connector",
        ])
        for part in ["interface org.unifiedpush.Connector2", "Message(in  a{sv}", "NewEndpoint(", "Unregistered("] {
            #expect(seen.output.contains(part), "\(part) in \(seen)")
        }
    }

    @Test func `without a delegate, a loop gets what happens`() async throws {
        let bus = try await DistributorBus()
        try bus.keepRegistration()
        let registry = bus.registry()
        registry.desiredPushTypes = [.voIP]
        var sending: Task<String, any Error>?
        for await event in registry.events {
            switch event {
            case .credentials:
                sending = Task { try await bus.distributor("Send", "kept", Self.message, "m1") }
                continue
            case .push(let push):
                #expect(push.payload.text == Self.plaintext)
                push.complete()
                push.complete()
            case .invalidated, .failed: Issue.record("\(event)")
            }
            break
        }
        expect(try await sending?.value, is: #"{"id": "m1"}"#)
    }
}
