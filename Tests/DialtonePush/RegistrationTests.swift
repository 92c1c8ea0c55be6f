// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtonePush

/// Registrations.
@Suite struct RegistrationTests {
    private static let name = "org.unifiedpush.Distributor.test"

    private static func sample() throws -> Registrations {
        var registrations = Registrations()
        registrations[.voIP] = try Registration(.voIP, at: name)
        var standard = try Registration(.standard, at: name)
        standard.endpoint = "https://push.example.net/x?y=z"
        registrations[.standard] = standard
        return registrations
    }

    @Test func `what is kept is read as it was`() throws {
        let registrations = try Self.sample()
        #expect(Registrations(registrations.bytes) == registrations)
        #expect(Registrations(Registrations().bytes) == Registrations())
        #expect(registrations.bytes.count < Registrations.mostBytes)
        for registration in registrations.byType.values {
            #expect(registrations.named(registration.token) == registration)
            #expect(
                registration.token.wholeMatch(
                    of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil,
                "\(registration.token)")
        }
        #expect(registrations.named("") == nil)
    }

    @Test func `a file that was cut is read as what is left of its lines, or not at all`() throws {
        let registrations = try Self.sample()
        let bytes = registrations.bytes
        for count in bytes.indices {
            let read = Registrations(Array(bytes.prefix(count)))
            let isWhole = count > 0 && bytes[count - 1] == UInt8(ascii: "\n")
            #expect((read != nil) == isWhole, "\(count) bytes")
        }
    }

    @Test(arguments: seeds(300))
    func `a damaged file is refused, or is another one that is sound`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var bytes = try Self.sample().bytes
        random.damage(&bytes, upTo: 6)
        guard let read = Registrations(bytes) else { return }
        #expect(Registrations(read.bytes) == read)
    }

    @Test(arguments: [
        "", "\n", "dialtone-push 2\n", "dialtone-push 1", "dialtone-push 1\n\n", "dialtone-push 1\nvoip\n",
        "dialtone-push 1\nvoip a b c d\n", "dialtone-push 1\nfax a b c d\n",
    ])
    func `another file is none`(text: String) {
        #expect(Registrations(Array(text.utf8)) == nil)
    }

    @Test func `a registration stands there once`() throws {
        let registrations = try Self.sample()
        let lines = String(decoding: registrations.bytes, as: UTF8.self)
        let twice = lines + (lines.split(separator: "\n").last ?? "") + "\n"
        #expect(Registrations(Array(twice.utf8)) == nil)
    }

    @Test func `the file is the user's alone, and replaced as a whole`() throws {
        let directory = TemporaryDirectory()
        let file = try #require(RegistrationFile(app: "org.example.A", environment: ["XDG_STATE_HOME": directory.path]))
        #expect(file.read() == nil)
        // What a crash left, readable for all.
        try directory.write("old", to: "dialtone-push/org.example.A.new")
        for text in ["first", "second"] {
            try file.write(Array(text.utf8))
            #expect(file.read() == Array(text.utf8))
            var status = stat()
            try #require(stat(file.path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
        expect(try FileManager.default.contentsOfDirectory(atPath: file.directory), is: ["org.example.A"])
    }

    @Test func `the file is below the user's state`() {
        func path(_ environment: [String: String]) -> String? {
            RegistrationFile(app: "org.example.A", environment: environment)?.path
        }
        #expect(path(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/dialtone-push/org.example.A")
        #expect(path(["XDG_STATE_HOME": "s", "HOME": "/h"]) == "/h/.local/state/dialtone-push/org.example.A")
        #expect(path([:]) == nil)
    }

    @Test(arguments: [
        ("org.example.Phone", true), ("a.b", true), ("_a.b-c", true), ("a", false), ("", false), (".", false),
        ("a..b", false), ("a.1b", false), ("a/b.c", false), ("a.b\n", false), (":1.5", false), ("a.é", false),
        ("a." + String(repeating: "b", count: 253), true), ("a." + String(repeating: "b", count: 254), false),
    ])
    func `a bus name is known`(name: String, isOne: Bool) {
        #expect(isBusName(name) == isOne)
    }

    @Test func `a distributor is chosen`() {
        func choice(_ running: Set<String>, _ startable: Set<String>, kept: String? = nil, wanted: String? = nil)
            -> String?
        {
            let full = { (names: Set<String>) in Set(names.map { "org.unifiedpush.Distributor.\($0)" }) }
            let name = PushConnector.choice(
                running: full(running).union([":1.1", "org.kde.x", "org.unifiedpush.Distributor."]),
                startable: full(startable), kept: kept.map { "org.unifiedpush.Distributor.\($0)" }, wanted: wanted)
            return name.map { String($0.dropFirst("org.unifiedpush.Distributor.".count)) }
        }
        #expect(choice([], []) == nil)
        #expect(choice(["b", "a"], ["c"]) == "a")
        #expect(choice([], ["c"]) == "c")
        #expect(choice(["a"], ["c"], kept: "c") == "c")
        #expect(choice(["a"], [], kept: "gone") == "a")
        #expect(choice(["a", "b"], [], kept: "a", wanted: "b") == "b")
        #expect(choice(["a", "b"], [], wanted: "org.unifiedpush.Distributor.b") == "b")
        #expect(choice(["a"], [], wanted: "gone") == "a")
    }

    @Test func `a token is the subscription that senders take`() {
        let credentials = PushCredentials(
            type: .voIP, endpoint: "https://push.example.net/\"", publicKey: [4, 0xFF],
            authenticationSecret: [0xFB, 0xF0])
        #expect(
            credentials.token
                == #"{"endpoint":"https://push.example.net/\"","keys":{"p256dh":"BP8","auth":"-_A"}}"#)
    }

    @Test(arguments: [
        PushError.invalidSettings("\"x\" is no bus name"), .noSessionBus, .nameRefused(name: "a.b", reason: "x"),
        .nameTaken(name: "a.b"), .noDistributor, .distributorFailed(name: "a.b", reason: "x"),
        .registrationFailed(.voIP, .internalError), .registrationFailed(.standard, .network),
        .registrationFailed(.voIP, .actionRequired), .registrationFailed(.voIP, .vapidRequired),
        .registrationFailed(.voIP, .unauthorized), .unreadable(.voIP, reason: "x"),
        .notKept(SystemError("making /x", code: EACCES)), .damaged(path: "/x"),
    ])
    func `every error is a sentence`(error: PushError) {
        let text = "\(error)"
        #expect(text.first?.isUppercase == true, "\(text)")
        #expect(text.last == "." && !text.contains("\n") && !text.contains("Optional("), "\(text)")
    }

    @Test func `settings that are wrong are told, and nothing is tried`() async throws {
        let registry = PushRegistry(appID: "phone", queue: .init(label: "app"))
        registry.desiredPushTypes = [.voIP]
        let event = await registry.events.first { _ in true }
        guard case .failed(.invalidSettings(let problem)) = event else {
            Issue.record("\(String(describing: event))")
            return
        }
        #expect(problem.contains("\"phone\""), "\(problem)")
    }

    @Test func `keys that are damaged are told and made anew`() async throws {
        let directory = TemporaryDirectory()
        let path = "\(directory.path)/dialtone-push/org.example.A"
        try directory.write("nonsense", to: "dialtone-push/org.example.A")
        let registry = PushRegistry(
            PushConnector.Settings(
                appID: "org.example.A", serverKey: nil, description: nil,
                busAddress: "unix:path=\(directory.path)/none", environment: ["XDG_STATE_HOME": directory.path]),
            queue: .init(label: "app"))
        registry.desiredPushTypes = [.voIP]
        let event = await registry.events.first { _ in true }
        guard case .failed(.damaged(path: path)) = event else {
            Issue.record("\(String(describing: event))")
            return
        }
    }
}
