// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneAPI
internal import DialtoneBus
internal import DialtoneClient
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import DialtoneTestSupport
internal import DialtoneVarlink
internal import FoundationEssentials
internal import Glibc

/// A push server, both agents, a session bus and apps that are registered; the server is the tests' stand-in for ntfy.
final class PushBench: Sendable {
    private static let address = LabNetwork.serverAddress(.v4)
    private static let (socketPort, webPort): (UInt16, UInt16) = (8080, 8081)

    private let lab: LabNetwork
    private let agent: Agent
    private let session: LabProcess
    private let bus: PrivateBus
    private let better: RouteChanger
    private let isBetterThere = Lock(false)
    private let apps: [PushApp]
    private let server: LabProcess

    init(_ daemon: String, in lab: LabNetwork) async throws {
        self.lab = lab
        let (address, ports) = (Self.address, (Self.socketPort, Self.webPort))
        server = try await lab.server.spawn([
            PyPI.python ?? "", "-u", "\(SourceTree.root)/Tests/PushServers/ntfy_standin.py", "--host", address,
            "--ports", "\(ports.0)", "\(ports.1)", "--ping", "\(PushProbe.pings)",
            // The bare reader answers no ping.
            "--pong", "3600",
        ])
        _ = try await server.line(containing: "\(ports.0) \(ports.1)")
        better = try await lab.host.run {
            try RouteChanger(
                bench_route((0, 0, 0, 0), length: 0, via: (198, 51, 100, 1), metric: LabNetwork.preferredMetric))
        }
        agent = try await Agent(daemon, on: lab.host)
        bus = try PrivateBus(.daemon)
        try await bus.start()
        bus.write("[push]\nserver = \"http://\(address):\(ports.0)\"\n", to: "session.toml")
        chmod(bus.file("session.toml"), 0o600)
        // Beside the daemon.
        let program = "\(daemon[...(daemon.lastIndex(of: "/") ?? daemon.startIndex)])dialtone-session"
        session = try await lab.host.spawn(
            [
                "env", "DBUS_SESSION_BUS_ADDRESS=\(bus.address)", "DBUS_SYSTEM_BUS_ADDRESS=\(bus.address)",
                "DIALTONE_SOCKET=\(agent.socket)", program, "--config",
                bus.file("session.toml"), "--socket", bus.file("session.sock"), "--state", bus.file("push"),
                "--log-level", "notice",
            ])
        _ = try await session.line(containing: "apps can register")
        var apps: [PushApp] = []
        for number in 0..<PushProbe.apps {
            let app = await PushApp("org.example.App\(number)", at: bus.address)
            try await app.isRegistered()
            apps.append(app)
        }
        self.apps = apps
        try await settle()
    }

    /// The path of the first app's endpoint, and its topic.
    private var topic: String {
        let url = apps[0].endpoint.withLock { $0 } ?? ""
        return String(url.split(separator: "/").last?.prefix { $0 != "?" } ?? "")
    }

    /// A program with a connection of its own: a thread that is blocked in a read on it. Its socket stands on whatever
    /// path.
    func subscribe() async throws -> Stamper {
        let (address, port, topic) = (Self.address, Self.socketPort, topic)
        let reader = try await lab.host.run {
            let socket = try opened("connecting to the server", asking_connect(address, port))
            let head = """
                GET /\(topic)/ws HTTP/1.1\r\nHost: \(address)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n
                """
            try write(head, to: socket.number)
            var (answer, byte) = ([UInt8](), UInt8(0))
            while !answer.suffix(4).elementsEqual([13, 10, 13, 10]), read(socket.number, &byte, 1) == 1 {
                answer.append(byte)
            }
            return try Stamper(socket, BENCH_MESSAGES)
        }
        // The server says that it listens.
        while reader.count == 0 { usleep(1000) }
        return reader
    }

    /// Posts a message in each round, and waits for the reader and for the app.
    func measure(
        _ rounds: Rounds, against reader: Stamper, prepare: @escaping (Int) async throws -> Void
    ) async throws -> Measurement {
        let (address, port, topic) = (Self.address, Self.webPort, topic)
        let sockets = Lock<[OwnedEnd]>([])
        return try await rounds.measure(against: reader, apps[0].stamps) { round in
            try await prepare(round)
            // The connection stands before; the answer to it is left unread.
            let socket = try await lab.server.run {
                OwnedEnd(try opened("connecting to the server", asking_connect(address, port)))
            }
            sockets.withLock { $0 = [socket] }
        } event: { round in
            let text = "message \(round)"
            let head = "POST /\(topic)?up=1 HTTP/1.0\r\nContent-Length: \(text.utf8.count)\r\n\r\n"
            guard let socket = sockets.withLock({ $0.first }) else { return }
            try write(head + text, to: socket.number)
        }
    }

    /// Has the agent dial anew.
    func redial() async throws {
        let before = try await epoch
        try await agent.client.redial("dialtone-push")
        try await isOpen(after: before)
        try await settle()
    }

    /// Moves the connection to the other path, and returns when somebody is logged in on the new socket.
    func roam() async throws {
        let before = try await epoch
        try better.change(
            add: isBetterThere.withLock { isThere in
                isThere.toggle()
                return isThere
            })
        try await isOpen(after: before)
    }

    private var epoch: Int { get async throws { try await agent.client.connections().first?.epoch ?? 0 } }

    private func isOpen(after epoch: Int) async throws {
        try await wait(for: "a socket that is logged in") {
            $0.epoch > epoch && $0.state == .ready && $0.session == .open
        }
    }

    /// Waits until all sleep.
    func settle() async throws {
        try await wait(for: "the connection to be parked") {
            $0.state == .ready && $0.holder != .client && $0.wake == nil && $0.unreadBytes ?? 0 == 0
                && $0.session == .open
        }
    }

    private func wait(for what: String, _ isSo: (ConnectionsAPI.Connection) -> Bool) async throws {
        var last = ""
        for _ in 0..<6000 {
            let connection = try await agent.client.connections().first
            if let connection, isSo(connection) { return }
            last = "\(connection.map { "\($0)" } ?? "none")\n\(session.text(of: .error))"
            try await Task.sleep(for: .milliseconds(5))
        }
        throw LabError.timedOut(awaited: what, limit: .seconds(30), state: last)
    }

    /// Has the apps go, and counts what goes on while nothing happens.
    func beIdle(for window: Duration) async throws -> PushProbe.Idle {
        for app in apps { await app.leave() }
        try await settle()
        try await Task.sleep(for: PushProbe.settling)
        let (session, daemon) = (session.processID, agent.process.processID)
        let before = (
            try ProcessCost.switches(of: session), try ProcessCost.switches(of: daemon),
            try ProcessCost.runTime(of: session), try await answered
        )
        try await Task.sleep(for: window)
        // The agent's are read before it is asked for its own counts.
        let switches = (try ProcessCost.switches(of: session), try ProcessCost.switches(of: daemon))
        return PushProbe.Idle(
            sessionSwitches: switches.0 - before.0, agentSwitches: switches.1 - before.1,
            sessionTime: try ProcessCost.runTime(of: session) - before.2, answered: try await answered - before.3,
            memory: try ProcessCost.memory(of: session))
    }

    /// What the agent counts of answers that it gave while the session agent slept.
    private var answered: Int {
        get async throws {
            let reply = try await agent.client.call(ConnectionsAPI.Metrics.self, .init())
            return reply.connections.first?.counters.answeredMessages ?? 0
        }
    }
}

/// An app that notes when it is called.
@AgentQueue
private final class PushApp {
    nonisolated let endpoint = Lock<String?>(nil)
    nonisolated let stamps = CallbackStamps()
    private let name: String
    private var bus: BusConnection?

    init(_ name: String, at address: String) {
        self.name = name
        let bus = BusConnection(address: address, connected: {}, lost: {})
        self.bus = bus
        bus.serve("/org/unifiedpush/Connector", [connector])
        bus.own(name) { [weak self] state in if state == .owned { self?.register() } }
    }

    private var connector: BusInterface {
        func method(_ name: String, _ take: @escaping @AgentQueue ([String: BusValue], BusCall) -> Void)
            -> BusInterface.Method
        {
            BusInterface.Method(name, [.init("args", "a{sv}")], returns: [.init("result", "a{sv}")]) { call in
                take(call.arguments.first?.dictionary ?? [:], call)
            }
        }
        let (stamps, endpoint) = (stamps, endpoint)
        return BusInterface(
            "org.unifiedpush.Connector2",
            [
                method("Message") { arguments, call in
                    stamps.add()
                    call.reply([.dictionary(arguments["id"].map { ["id": $0] } ?? [:])])
                },
                method("NewEndpoint") { arguments, call in
                    endpoint.withLock { $0 = arguments["endpoint"]?.text }
                    call.reply([.dictionary([:])])
                },
                method("Unregistered") { _, call in call.reply([.dictionary([:])]) },
            ])
    }

    private func register() {
        let arguments: [String: BusValue] = ["service": .string(name), "token": .string("token")]
        bus?.call(
            "org.unifiedpush.Distributor.Dialtone", "/org/unifiedpush/Distributor", "org.unifiedpush.Distributor2",
            "Register", filling: { $0.value(.dictionary(arguments)) }
        ) { _ in }
    }

    /// Waits until it has an endpoint.
    nonisolated func isRegistered() async throws {
        for _ in 0..<3000 {
            if endpoint.withLock({ $0 }) != nil { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw LabError.timedOut(awaited: "an endpoint", limit: .seconds(30), state: "none")
    }

    /// Leaves the bus. It stays registered.
    func leave() { bus = nil }
}

/// Writes a text to a socket whose buffer has room for it.
private func write(_ text: String, to socket: CInt) throws {
    let bytes = Array(text.utf8)
    if Glibc.write(socket, bytes, bytes.count) != bytes.count { throw SystemError.last("writing to the server") }
}
