// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneProcesses
internal import Reachability

struct Exec: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a program that knows nothing of dialtone, and tell it when its way to a server has changed.",
        discussion: """
            When packets to the host leave by another interface, or a connection's local address is gone, dialtone \
            shuts down each such TCP connection of the program or its descendants. The program reads the end of the \
            stream at once, and dials as after any loss. Without this, it finds out when its own keepalive has no \
            answer. If only the gateway changes, the kernel probes the server, and ends the connection if there is no \
            answer within 9 s.

            While there is no route, nothing is done. If it comes back as it was, the connections may go on.

            Needs no agent. Not for a program that becomes another user (setuid), nor for processes that it leaves \
            behind as daemons.

            Exit status: the program's; 128 and the signal's number when a signal ended it; 127 when there is no such \
            program, 126 when it cannot be run; otherwise as for the other commands.
            """)

    @Argument(
        help: "\(TargetArgument.forms); with a port, only connections to that port are shut down.",
        transform: TargetArgument.parse)
    var target: TargetArgument

    @Argument(parsing: .postTerminator, help: "What to run, with its arguments.")
    var command: [String] = []

    func validate() throws {
        try target.requireLink()
        try ForegroundCommand.require(command)
    }

    func run() async throws {
        let command = try ForegroundCommand(command)
        let rerouted = await ReroutedSockets(to: target)
        await rerouted.begin()
        let status = try await command.run { () throws(SystemError) in
            let process = try Spawn.start(
                "starting \(command.program)", command.program, command.arguments, descriptors: [])
            rerouted.sockets = ProcessSockets(of: process)
            return process
        }
        if status != 0 { throw ExitCode(status) }
    }
}

/// The sockets of a program to a host: those that stand on a way that packets take no more are shut down.
@AgentQueue
private final class ReroutedSockets {
    /// The program's; `nil` before it was started.
    var sockets: ProcessSockets?
    private let target: TargetArgument
    private var ways = KnownWays()
    /// The addresses of the host's name whose paths are followed, each by itself: the program may have chosen any.
    private var followed: Set<IPAddress> = []
    /// What was told already, and would be told at each change.
    private var told: Set<String> = []

    /// So many addresses of one name are followed. A name of a service has some eight; names whose addresses change
    /// with each answer are left at that.
    private static let mostAddresses = 64

    /// So long the program waits for the ways. It needs them itself, but may have other things to do.
    private static let patience = Duration.seconds(1)

    init(to target: TargetArgument) { self.target = target }

    /// Begins to follow the path to the host, and to each address of its name, until the process ends. Returns when the
    /// ways are known: a change would not be noticed of one by which the program dialled before that.
    func begin() async {
        let (known, isKnown) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        Task { await follow { isKnown.yield() } }
        Task {
            try? await ContinuousClock().sleep(for: Self.patience)
            isKnown.yield()
        }
        for await _ in known { return }
    }

    private func follow(_ isKnown: () -> Void) async {
        let host = HostReachability(packets)
        for await (path, changes) in host.updates {
            pathChanged(to: path)
            if case .name = packets.host, changes.isEmpty || changes.contains(.destination) {
                for path in (try? await host.explanation().others) ?? [] { follow(path) }
                follow(path)
            }
            isKnown()
        }
    }

    /// What is asked about: the way of the program's packets.
    private var packets: Target {
        var packets = target.target
        packets.transport = .tcp
        return packets
    }

    private func follow(_ path: Path) {
        guard let address = path.destination, followed.count < Self.mostAddresses, followed.insert(address).inserted
        else { return }
        pathChanged(to: path)
        var packets = packets
        packets.host = .address(address)
        Task {
            for await (path, _) in HostReachability(packets).updates { pathChanged(to: path) }
        }
    }

    private func pathChanged(to path: Path) {
        if path.status == .unknown { tellOnce("the kernel cannot be asked for a route: no change will be noticed") }
        guard let change = ways.note(path), let sockets else { return }
        do throws(SystemError) {
            let (ended, asked) = try sockets.treat { fate(of: $0, change) }
            tell(change, "shut down", of: ended)
            tell(change, "the server is asked", of: asked)
        } catch {
            tellOnce("\(error); a connection whose way has changed stays as it is")
        }
    }

    private func tell(_ change: WayChange, _ consequence: String, of count: Int) {
        if count == 0 { return }
        let (old, new) = (NetworkAPI.Path(change.old), NetworkAPI.Path(change.new))
        Output.fail(PathText.rerouted(from: old, to: new, target: target.text, consequence, of: count))
    }

    private func fate(of socket: SocketEntry, _ change: WayChange) -> WayChange.Fate {
        guard packets.port == nil || packets.port == socket.remotePort else { return .untouched }
        return change.fate(from: socket.local, to: socket.remote)
    }

    private func tellOnce(_ text: String) {
        if told.insert(text).inserted { Output.fail(text) }
    }
}
