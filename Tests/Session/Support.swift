// SPDX-License-Identifier: Apache-2.0

import DialtoneBus
import DialtoneDistributor
import DialtonePlatform
import DialtoneTestSupport
import Foundation

@testable import DialtoneSession

/// Whether apps in Python can run here; told aloud where not.
let hasConnector: Bool = {
    let isThere = Program.run("/usr/bin/python3", ["-c", "from gi.repository import Gio"]).status == 0
    if !isThere { print("SKIPPED: tests with an app in Python, for which python3-gi is missing") }
    return isThere
}()

/// The buses that the tests run under.
let kinds = hasConnector ? PrivateBus.kinds : []

/// The driver's place: notes what an ``AppBus`` tells.
@AgentQueue
final class Recorder: AppBusOwner {
    var requests: [RegistrationRequest] = []
    var unanswered: [@AgentQueue (RegistrationAnswer) -> Void] = []
    var answer: RegistrationAnswer? = .succeeded
    var registered: [String: [AppIdentity]] = [:]
    var ended: [String] = []
    var refusals: [String] = []
    var comings: [String] = []
    var busNews: [String] = []
    var states: [BusConnection.NameState] = []
    /// What the distributor paces apps by.
    var now = Duration.zero

    func registerAsked(
        _ request: RegistrationRequest, answer: @escaping @AgentQueue (RegistrationAnswer) -> Void
    ) {
        requests.append(request)
        registered[request.token, default: []].append(request.app)
        if let given = self.answer { answer(given) } else { unanswered.append(answer) }
    }

    /// Whether everything that was asked for once is registered.
    var keeps = false

    func isRegistered(_ request: RegistrationRequest) -> Bool { keeps && requests.contains(request) }

    func apps(registeredAs token: String) -> [AppIdentity] { registered[token] ?? [] }

    func unregisterAsked(_ app: AppIdentity, token: String) { ended.append("\(app.name) \(token)") }

    func callerRefused(_ why: String) { refusals.append(why) }

    func appAppeared(_ name: String) { comings.append("\(name) came") }

    func appVanished(_ name: String) { comings.append("\(name) went") }

    func busConnected() { busNews.append("connected") }

    func busLost() { busNews.append("lost") }

    func nameChanged(_ state: BusConnection.NameState) { states.append(state) }
}

/// A program in Python on a bus, killed when nobody has it any more.
final class BusProgram: Sendable {
    private let process: Lock<Int32?>

    static func path(_ script: String) -> String { Bundle.module.path(forResource: script, ofType: "py") ?? "" }

    /// - Parameter within: a command that becomes the one that follows.
    init(_ script: String, _ arguments: [String] = [], on bus: PrivateBus, within: [String] = []) throws {
        let command = within + ["/usr/bin/python3", Self.path(script)] + arguments
        let started = try Spawn.start(
            "starting \(script)", command[0], command,
            environment: ["DBUS_SESSION_BUS_ADDRESS=\(bus.address)", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
            descriptors: [(0, .file("/dev/null"))])
        process = Lock(started)
    }

    deinit { end() }

    func end() {
        guard let process = process.withLock({ $0.take() }) else { return }
        kill(process, SIGKILL)
        _ = try? Spawn.exitStatus(of: process)
    }
}

/// A bus with our distributor on it, and apps.
final class Desk: Sendable {
    let bus: PrivateBus
    let owner: Recorder
    let apps: AppBus
    private let programs = Lock<[BusProgram]>([])

    init(_ kind: PrivateBus.Kind, services: [String: String] = [:]) async throws {
        bus = try PrivateBus(kind)
        for (name, command) in services {
            let all = command.replacing("LOG", with: bus.file("\(name).log"))
            bus.addService(name, "/usr/bin/env DBUS_SESSION_BUS_ADDRESS=\(bus.address) \(all)")
        }
        try await bus.start()
        (owner, apps) = await Self.distributor(at: bus.address)
        let owner = owner
        try await eventually("the distributor owns its name") { owner.states == [.owned] }
    }

    @AgentQueue
    private static func distributor(at address: String) -> (Recorder, AppBus) {
        let owner = Recorder()
        return (owner, AppBus(address: address, owner: owner) { owner.now })
    }

    static let script = BusProgram.path("connector")

    /// Begins an app, which ends with the desk at the latest.
    @discardableResult
    func begin(_ log: String, _ commands: String..., within: [String] = []) throws -> BusProgram {
        let app = try BusProgram("connector", [bus.file(log)] + commands, on: bus, within: within)
        programs.withLock { $0.append(app) }
        return app
    }

    /// Runs an app to its end, and gives what it saw.
    func run(_ commands: String...) -> [String] { run(commands) }

    /// The same.
    func run(_ commands: [String]) -> [String] {
        let log = "app.\(UUID().uuidString).log"
        let result = Program.run(
            "/usr/bin/python3", [Self.script, bus.file(log)] + commands,
            environment: ["DBUS_SESSION_BUS_ADDRESS": bus.address])
        return lines(log) + (result.status == 0 ? [] : ["status \(result.status): \(result.error)"])
    }

    /// Runs gdbus(1) on this bus.
    func gdbus(_ arguments: String...) -> String {
        let result = Program.run(
            systemProgram("gdbus") ?? "gdbus", [arguments[0], "--address", bus.address] + arguments.dropFirst())
        return result.output + result.error
    }

    /// Runs busctl(1) on this bus.
    func busctl(_ arguments: String...) -> String {
        let result = Program.run(systemProgram("busctl") ?? "busctl", ["--address=\(bus.address)"] + arguments)
        return result.output + result.error
    }

    /// What an app has written.
    func lines(_ log: String) -> [String] {
        (FileContent.text(of: bus.file(log)) ?? "").split(separator: "\n").map(String.init)
    }

    /// Calls an app's connector.
    func tell(
        _ name: String, _ content: AppTelling.Content, _ version: ConnectorVersion = .v2,
        timeout: Duration = .seconds(30), sandbox: String? = nil, isDemoted: Bool = false
    ) async throws -> AppAnswer {
        let answer = Lock<AppAnswer?>(nil)
        let apps = apps
        await onQueue {
            apps.tell(
                AppTelling(
                    attempt: 1, app: AppIdentity(name: name, sandbox: sandbox), version: version, token: "t",
                    isDemoted: isDemoted, content: content, timeout: timeout)
            ) { given in answer.withLock { $0 = given } }
        }
        try await eventually("an answer of \(name)") { answer.withLock { $0 } != nil }
        return answer.withLock { $0 } ?? .unknown
    }
}
