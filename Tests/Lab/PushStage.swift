// SPDX-License-Identifier: Apache-2.0

import DialtoneClient
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Foundation
import Testing

/// Prosody with its push service behind two uplinks, and a host with the machine's agent, a session bus, the session
/// agent and apps that the bus can start.
final class PushStage: Sendable {
    /// What an app was told, a line of `push_app.py`.
    struct Told: Decodable, Hashable {
        let method: String
        let process: Int
        let token: String
        let message: String?
        let endpoint: String?
        let id: String?
    }

    /// How an app can fail; the file of that name has `push_app.py` do it.
    enum Manner: String { case refuse, crash, hang }

    private static let address = LabNetwork.serverAddress(.v4)
    private static let (user, domain, password) = ("juliet", "lab.example", "secret")
    private static let (streamPort, webPort) = (5223, 5280)

    let lab: LabNetwork
    let home: DaemonHome
    let server: LabServer
    private let processes: Lock<Processes>

    private struct Processes {
        var bus, agent, session: LabProcess
    }

    private init(_ lab: LabNetwork, _ home: DaemonHome, _ server: LabServer, _ processes: Processes) {
        (self.lab, self.home, self.server, self.processes) = (lab, home, server, Lock(processes))
    }

    /// Runs `body` on a stage whose session agent is logged in.
    static func set(_ apps: [String], _ body: (PushStage) async throws -> Void) async throws {
        let (files, home) = (TestFiles(), try DaemonHome())
        let authority = TestCertificate(.authority("Lab Authority"))
        let trusted = files.write(authority.pem, to: "authority.pem")
        try await LabNetwork.with { lab in
            let server = try await LabServer.start(recipe(authority), on: lab.server)
            let passwordFile = files.write(password, to: "password")
            try Data(
                """
                [push]
                server = "xmpp:\(user)@\(domain)"
                host = "\(address):\(streamPort)"
                password_file = "\(passwordFile)"
                ca = "\(trusted)"

                """.utf8
            ).write(to: URL(filePath: "\(home.directory)/session.toml"))
            chmod("\(home.directory)/session.toml", 0o600)
            for app in apps { try describe(app, in: home) }
            let bus = try await SessionBus.start(on: lab.host, in: home.directory)
            let agent = try await home.start(on: lab.host)
            let session = try await startSession(on: lab.host, home)
            let stage = PushStage(lab, home, server, Processes(bus: bus, agent: agent, session: session))
            try await body(stage)
            withExtendedLifetime(files) {}
        }
    }

    /// Prosody with an account, its push service, and nothing else.
    private static func recipe(_ authority: TestCertificate) -> LabServer.Recipe {
        let certificate = TestCertificate(.init(domain, alternatives: "DNS:\(domain)"), issuer: authority)
        let texts = Data((certificate.chain + certificate.keyText()).utf8)
        let home = ServerHome { directory in
            """
            run_as_root = true
            data_path = "\(directory)"
            certificates = "\(directory)"
            plugin_paths = { "/usr/lib/prosody/modules", "/usr/share/prosody/modules" }
            modules_enabled = { "saslauth", "ping", "disco", "smacks", "tls", "http", "unified_push" }
            modules_disabled = { "s2s" }
            authentication = "internal_plain"
            c2s_ports = {}
            c2s_direct_tls_ports = { \(streamPort) }
            c2s_direct_tls_ssl = { certificate = "\(directory)/server.pem", key = "\(directory)/server.pem" }
            http_ports = { \(webPort) }
            http_interfaces = { "*" }
            https_ports = {}
            http_external_url = "http://\(address):\(webPort)/"
            http_host = "\(address)"
            unified_push_secret = "only the lab knows"
            smacks_hibernation_time = 600
            log = { { levels = { min = "info" }, to = "console" } }
            VirtualHost "\(domain)"
                ssl = { certificate = "\(directory)/server.pem", key = "\(directory)/server.pem" }

            """
        }
        return LabServer.Recipe(port: UInt16(streamPort)) { machine in
            try texts.write(to: URL(filePath: "\(home.directory)/server.pem"))
            _ = try await machine.command(["prosodyctl", "--config", home.file, "register", user, domain, password])
            let process = try await machine.spawn(["prosody", "-F", "--config", home.file])
            _ = try await process.line(containing: "Activated service 'c2s_direct_tls' on")
            return process
        }
    }

    // MARK: - Apps

    /// Has the session bus know how to start an app.
    private static func describe(_ app: String, in home: DaemonHome) throws {
        for folder in ["services", app] {
            try FileManager.default.createDirectory(
                atPath: "\(home.directory)/\(folder)", withIntermediateDirectories: true)
        }
        let command = "/usr/bin/python3 \(SourceTree.root)/Tests/Lab/push_app.py \(app) \(home.directory)/\(app)"
        try Data("[D-BUS Service]\nName=\(app)\nExec=\(command)\n".utf8).write(
            to: URL(filePath: "\(home.directory)/services/\(app).service"))
    }

    /// Registers an app, which is started for it, and returns its endpoint.
    func register(_ app: String, as token: String = "token") async throws -> String {
        let before = try told(to: app).count
        let answer = try await lab.host.outcome(
            [
                "/usr/bin/python3", "\(SourceTree.root)/Tests/Lab/push_app.py", app, "\(home.directory)/\(app)",
                "register", token,
            ], environment: Self.environment(home))
        #expect(answer.output.contains("REGISTRATION_SUCCEEDED"), "\(answer)\n\(log)")
        try await eventually("an endpoint for \(app)") {
            try told(to: app).dropFirst(before).contains { $0.method == "NewEndpoint" && $0.token == token }
        }
        return try #require(try told(to: app).last { $0.method == "NewEndpoint" && $0.token == token }?.endpoint)
    }

    /// What an app was told so far.
    func told(to app: String) throws -> [Told] {
        let path = "\(home.directory)/\(app)/told"
        guard let data = FileManager.default.contents(atPath: path) else { return [] }
        return try data.split(separator: UInt8(ascii: "\n")).map { try JSONDecoder().decode(Told.self, from: $0) }
    }

    /// The messages that an app took so far.
    func messages(of app: String) throws -> [String] { try told(to: app).compactMap(\.message) }

    /// Waits until an app has taken so many messages.
    func hasTaken(_ count: Int, app: String) async throws {
        for patience in 1...2 {
            do {
                return try await eventually("message \(count)") { try messages(of: app).count >= count }
            } catch let error as NothingCame where patience == 2 {
                throw NothingCame(description: "\(error.description)\n\(log)")
            } catch is NothingCame {}
        }
    }

    /// Has an app behave badly from now on, or no longer.
    func misbehave(_ app: String, by manner: Manner, _ isOn: Bool = true) {
        let path = "\(home.directory)/\(app)/\(manner)"
        if isOn { _ = FileManager.default.createFile(atPath: path, contents: nil) } else { unlink(path) }
    }

    // MARK: - The app's server

    /// Posts messages to an endpoint, one after the other, each until the service says that it was delivered or for as
    /// long as it may.
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
        let outcome = try await lab.server.outcome(["/usr/bin/python3", "-c", script, endpoint] + bodies)
        #expect(outcome.exit == .status(0), "\(outcome)")
        return outcome.lines
    }

    // MARK: - The two agents

    /// What the session agent and the machine's agent wrote.
    var log: String {
        let now = processes.withLock { $0 }
        return "session: \(now.session.text(of: .error))\nagent: \(now.agent.text(of: .error).suffix(4000))"
    }

    private static func environment(_ home: DaemonHome) -> [String: String] {
        [
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(home.directory)/bus", "DIALTONE_SOCKET": home.socket,
            "DIALTONE_SESSION_SOCKET": "\(home.directory)/session.sock", "XDG_RUNTIME_DIR": home.directory,
            // There is no system bus on a machine of the Lab.
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(home.directory)/none",
        ]
    }

    private static func startSession(on machine: Namespace, _ home: DaemonHome) async throws -> LabProcess {
        let session = try await machine.spawn(
            [
                LabAgent.program("dialtone-session"), "--config", "\(home.directory)/session.toml", "--socket",
                "\(home.directory)/session.sock", "--state", "\(home.directory)/push", "--log-level", "debug",
            ], environment: environment(home).merging(DaemonHome.quietCrashes) { mine, _ in mine })
        _ = try await session.line(containing: "apps can register")
        return session
    }

    /// Kills the session agent, and starts it again.
    func killSession() async throws {
        try await processes.withLock { $0.session }.killNow()
        let session = try await Self.startSession(on: lab.host, home)
        processes.withLock { $0.session = session }
    }

    /// Kills the machine's agent, and starts it again.
    func killAgent() async throws {
        try await processes.withLock { $0.agent }.killNow()
        let agent = try await home.start(on: lab.host)
        processes.withLock { $0.agent = agent }
    }

    /// Ends the session bus, and starts it again.
    func restartBus() async throws {
        try await processes.withLock { $0.bus }.killNow()
        let bus = try await SessionBus.start(on: lab.host, in: home.directory)
        processes.withLock { $0.bus = bus }
    }

    /// Runs `dialtone push` to its end.
    func dialtone(_ arguments: String...) async throws -> Outcome {
        try await lab.host.outcome(
            [LabAgent.program("dialtone"), "push"] + arguments, environment: Self.environment(home))
    }

    /// Waits until the session agent is logged in at the server.
    func isLoggedIn() async throws {
        try await eventually("a login\n\(log)") {
            let status = try await dialtone("status", "--json")
            #expect(status.exit == .status(0), "\(status)\n\(log)")
            return status.output.contains("\"isUp\":true")
        }
    }
}
