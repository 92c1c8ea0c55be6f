// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

/// The apps of a stage, and their servers.
extension PushStage {
    /// Which program an app is.
    enum AppKind {
        /// `push_app.py`: GLib's D-Bus, no encryption, and it can behave badly.
        case script
        /// `lab-phone`: the library DialtonePush, which decrypts.
        case phone
    }

    /// What an app was told, a line of its file.
    struct Told: Decodable, Hashable {
        let method: String
        let process: Int
        /// What it registered as; of a phone, what its server needs.
        let token: String
        let message: String?
        let endpoint: String?
        let id: String?
    }

    /// How an app can fail; the file of that name has `push_app.py` do it.
    enum Manner: String { case refuse, crash, hang }

    /// What the sender saw of one message.
    struct Sent: Hashable {
        /// The status of the answer, or the name of the error.
        let status: String
        /// Whether the app had the message at that moment.
        let wasThere: Bool
    }

    /// An app's files.
    static func folder(_ app: String, _ home: DaemonHome) -> String { "\(home.directory)/\(app)" }

    private func folder(_ app: String) -> String { Self.folder(app, home) }

    /// The command that runs an app.
    static func command(_ app: String, _ kind: AppKind, _ home: DaemonHome, for seconds: Int = 2) -> [String] {
        let folder = folder(app, home)
        return switch kind {
        case .script: ["/usr/bin/python3", "\(SourceTree.root)/Tests/Lab/push_app.py", app, folder]
        case .phone:
            ["/usr/bin/env", "XDG_STATE_HOME=\(folder)", LabAgent.program("lab-phone"), app, folder, "\(seconds)"]
        }
    }

    /// Has the session bus know how to start an app.
    static func describe(_ app: String, _ kind: AppKind, in home: DaemonHome, on bus: PrivateBus) throws {
        try FileManager.default.createDirectory(atPath: folder(app, home), withIntermediateDirectories: true)
        bus.addService(app, command(app, kind, home).joined(separator: " "))
    }

    /// Runs an app that nobody else starts, for so long after the last thing that it is told.
    func run(_ app: String, _ kind: AppKind, for seconds: Int) async throws -> LabProcess {
        try await lab.host.spawn(Self.command(app, kind, home, for: seconds), environment: environment)
    }

    /// Has a `push_app.py` register, and returns its endpoint.
    func register(_ app: String, as token: String = "token", isVoIP: Bool = false) async throws -> String {
        let before = try told(to: app).count
        let answer = try await lab.host.outcome(
            Self.command(app, .script, home) + ["register", token, isVoIP ? "voip" : "standard"],
            environment: environment)
        #expect(answer.output.contains("REGISTRATION_SUCCEEDED"), "\(answer)\n\(log)")
        let told = try await next(after: before, "an endpoint", of: app) {
            $0.method == "NewEndpoint" && $0.token == token
        }
        return try #require(told.endpoint)
    }

    /// Has a `lab-phone` register, and returns what its server needs.
    func registerPhone(_ app: String) async throws -> String {
        let before = try told(to: app).count
        let phone = try await run(app, .phone, for: 2)
        let told = try await next(after: before, "a token", of: app) { $0.method == "NewEndpoint" }
        // It sleeps from now on.
        _ = try await phone.exit()
        return told.token
    }

    /// Waits for something that an app is told after so much else.
    func next(
        after count: Int, _ what: String, of app: String, _ matches: @Sendable (Told) -> Bool
    ) async throws -> Told {
        var found: Told?
        try await eventually("\(what) of \(app)\n\(log)") {
            found = try told(to: app).dropFirst(count).first(where: matches)
            return found != nil
        }
        return try #require(found)
    }

    /// What an app was told so far.
    func told(to app: String) throws -> [Told] {
        guard let data = FileManager.default.contents(atPath: "\(folder(app))/told") else { return [] }
        // The last line may be half there: it is being written.
        let lines = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
        return try lines.map { try JSONDecoder().decode(Told.self, from: $0) }
    }

    /// The messages that an app took so far.
    func messages(of app: String) throws -> [String] { try told(to: app).compactMap(\.message) }

    /// Waits until an app has taken so many messages.
    ///
    /// - Parameter patience: how often it is waited for; once is a minute and a half.
    func hasTaken(_ count: Int, app: String, patience: Int = 2) async throws {
        try await eventually("message \(count)\n\(log)", patience: patience) {
            try messages(of: app).count >= count
        }
    }

    /// Has an app behave badly from now on, or no longer.
    func misbehave(_ app: String, by manner: Manner, _ isOn: Bool = true) {
        let path = "\(folder(app))/\(manner)"
        if isOn { _ = FileManager.default.createFile(atPath: path, contents: nil) } else { unlink(path) }
    }

    // MARK: - The app's server

    /// Posts messages to an endpoint as they are, one after the other.
    ///
    /// - Returns: the status of each.
    func post(_ bodies: [String], to endpoint: String) async throws -> [String] {
        let script = """
            import sys, urllib.request, urllib.error
            for body in sys.argv[2:]:
                request = urllib.request.Request(sys.argv[1], body.encode(), {"TTL": "3600"})
                try:
                    print(urllib.request.urlopen(request, timeout=150).status, flush=True)
                except urllib.error.HTTPError as error:
                    print(error.code, flush=True)
                except OSError as error:
                    print(type(error).__name__, flush=True)
            """
        let outcome = try await lab.server.outcome(
            ["/usr/bin/python3", "-c", script, endpoint] + bodies, within: .seconds(200))
        #expect(outcome.exit == .status(0), "\(outcome)")
        return outcome.lines
    }

    /// Sends the messages "PREFIX 1" to "PREFIX COUNT" encrypted for a phone, one after the other, by PyPI's pywebpush.
    ///
    /// - Parameter patience: how long all of them together may take.
    func send(
        _ numbers: ClosedRange<Int>, _ prefix: String = "message", to token: String, of app: String,
        within patience: Duration = .seconds(400)
    ) async throws -> [Sent] {
        let outcome = try await lab.server.outcome(
            [
                PyPI.python ?? "", "\(SourceTree.root)/Tests/Lab/push_sender.py", token, "\(folder(app))/told", prefix,
                "\(numbers.lowerBound)", "\(numbers.upperBound)",
            ], within: patience)
        #expect(outcome.exit == .status(0), "\(outcome)\n\(log)")
        return outcome.lines.map { line in
            let words = line.split(separator: " ")
            return Sent(status: String(words[0]), wasThere: words.last == "has")
        }
    }
}
