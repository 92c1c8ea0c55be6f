// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import Foundation
import Testing

@testable import Reachability

/// What is recorded while a real kernel changes, and replayed without one.
@Suite(.lab)
struct RecordingTests {
    @Test func `a recorded session is replayed to the verdicts that were given`() async throws {
        try await LabNetwork.with { lab in
            let session = try await Session.begin(on: lab, "changes")
            let server = Question.host(Target(.init(LabNetwork.serverAddress(.v4)), port: 1883))
            let other = Question.host(Target(.init(LabNetwork.serverAddress(.v6)), interface: "wan1"))
            for question in [
                .network(.any), .network(.requires(.wifi)), server, other, .host(Target(.name("localhost"))),
            ] {
                try await session.watch(question)
            }
            try await lab.cut(.wan0)
            try await session.path(to: server, "the loss") { $0.reason == .noCarrier }
            try await lab.plug(.wan0)
            try await session.path(to: server, "the cable") { $0.status == .satisfied }
            try await lab.takeDown(.wan0)
            try await session.path(to: server, "the second uplink") { $0.interface?.name == "wan1" }
            try await lab.bringUp(.wan0)
            try await session.path(to: server, "the first uplink") { $0.interface?.name == "wan0" }
            try await lab.replaceAddress(.v4, on: .wan0, with: "192.0.2.77/24")
            try await session.path(to: server, "the new address") { $0.source == IPAddress("192.0.2.77") }
            try await lab.preferDefaultRoute(via: .wan1)
            try await session.path(to: server, "the moved default route") { $0.interface?.name == "wan1" }
            await session.engine.setCosts(CostPolicy(expensive: ["wan1", "a,b %"]))
            try await session.path(to: server, "the cost") { $0.isExpensive }
            try await lab.addRefusingRoute(.prohibit, "203.0.113.0/24")
            try await session.path(to: server, "the prohibition") { $0.reason == .prohibited }
            try await lab.takeDown(.wan1)
            try await session.path(to: other, "the lost link") { $0.status == .unsatisfied }
            try await session.replaysExactly()
        }
    }

    @Test func `an overrun is replayed as one`() async throws {
        try await LabNetwork.with { lab in
            let session = try await Session.begin(on: lab, "overrun", receiveBuffer: 1)
            let server = Question.host(Target(.init(LabNetwork.serverAddress(.v4)), port: 1883))
            try await session.watch(server)
            let gateway = Uplink.wan0.gateway(.v4)
            try await lab.host.ip(
                batch: (0..<500).map { "route add 198.18.\($0 / 250).\($0 % 250)/32 via \(gateway)" }
                    + ["route add prohibit 203.0.113.0/24"])
            try await session.path(to: server, "the right verdict") { $0.reason == .prohibited && $0.isCoherent }
            let recording = try await session.replaysExactly()
            #expect(recording.marks.contains { $0.word == "overrun" && $0["channel"] == "notices" })
        }
    }

    @Test func `what was said of costs before the kernel could be asked holds afterwards`() async throws {
        try await LabNetwork.with { lab in
            let sockets = try await lab.host.run { try KernelSockets() }
            let engine = await NetworkState.refusedOnce(thenOn: sockets)
            await engine.setCosts(CostPolicy(expensive: ["wan0"]))
            let isUnknown = await engine.failure != nil
            #expect(isUnknown)
            let host = HostReachability(Target(.init(LabNetwork.serverAddress(.v4))), on: { engine })
            for await (path, _) in host.updates where path.status == .satisfied {
                #expect(path.isExpensive && path.interface?.costSource == .configuration)
                break
            }
        }
    }

    @Test func `a daemon records from its first message on, and replay shows what happened`() async throws {
        let machine = try await Namespace.island()
        let home = try DaemonHome()
        let file = "\(home.directory)/field.pcapng"
        // Somebody's file at the end of a link is not written to.
        try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: home.file)
        let arguments = ["--socket", home.socket, "--config", home.file, "--record", file]
        let refused = try await home.launch(on: machine, arguments: arguments)
        expect(try await refused.exit(), is: .status(EX_CANTCREAT))
        #expect(refused.text(of: .error).contains(file))
        try FileManager.default.removeItem(atPath: file)

        let daemon = try await home.launch(on: machine, arguments: arguments)
        _ = try await daemon.line(containing: "listening")
        try await machine.landBridge()
        _ = try await daemon.line(containing: "=satisfied")
        daemon.signal(SIGTERM)
        expect(try await daemon.exit(), is: .status(0))
        var status = stat()
        #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)

        let shown = try await home.dialtone("replay", file, on: machine)
        #expect(shown.exit == .status(0), "\(shown)")
        #expect(shown.lines.last?.contains("available over bridge0") == true, "\(shown)")
        let next = try await home.launch(on: machine, arguments: arguments)
        _ = try await next.line(containing: "listening")
        let kept = try await home.dialtone("replay", "\(file).old", on: machine)
        #expect(kept.output == shown.output)

        // What reached the file before a hard end is there.
        // `tail` in the place of the shell, so that the end of the namespace is its end, and with it `tr`'s.
        let reader = try await machine.spawn([
            "bash", "-c", "exec tail -c +1 -f \(file) > >(stdbuf -o0 tr -c '[:print:]' '\\n')",
        ])
        _ = try await reader.line(containing: "verdict id=1")
        _ = try await next.killNow()
        let rest = try await home.dialtone("replay", file, on: machine)
        #expect(rest.output.contains("available over bridge0"), "\(rest)")
        let damaged = try await home.dialtone("replay", home.file, on: machine)
        #expect(damaged.exit == .status(EX_DATAERR))
        #expect(damaged.error.contains("not a recording"), "\(damaged)")
    }
}

/// An engine that records, what its observers were told, and the file.
private final class Session: Sendable {
    let engine: NetworkState
    private let recorder: Recorder
    private let file: String
    private let name: String
    private let signal = ChangeSignal()
    private let told = Lock<[(question: Question, path: Path)]>([])
    @AgentQueue private var observations: [PathObservation] = []

    private init(_ engine: NetworkState, _ recorder: Recorder, _ file: String, _ name: String) {
        (self.engine, self.recorder, self.file, self.name) = (engine, recorder, file, name)
    }

    static func begin(
        on lab: LabNetwork, _ name: String, receiveBuffer: Int = KernelSockets.defaultReceiveBuffer
    ) async throws -> Session {
        let file = FileManager.default.temporaryDirectory.appending(path: "dialtone-\(UUID().uuidString)").path
        let recorder = try Recorder(creating: file, program: "RecordingTests") { Issue.record("it ended: \($0)") }
        let sockets = try await lab.host.run { try KernelSockets(receiveBuffer: receiveBuffer, recorder: recorder) }
        return Session(await NetworkState(sockets), recorder, file, name)
    }

    deinit { unlink(file) }

    /// Watches `question`, and returns when it has its first path.
    func watch(_ question: Question) async throws {
        await observe(question)
        try await path(to: question, "a first path") { _ in true }
    }

    @AgentQueue private func observe(_ question: Question) {
        observations.append(
            engine.observe(question) { [unowned self] path, _ in
                told.withLock { $0.append((question, path)) }
                signal.notify()
            })
    }

    /// Waits until the path last told matches.
    func path(to question: Question, _ awaited: String, where matches: (Path) -> Bool) async throws {
        let _: Path = try await signal.wait(for: awaited, describe: { told.withLock { "\($0.last as Any)" } }) {
            let last = told.withLock { told in told.last { $0.question == question }?.path }
            return last.flatMap { matches($0) ? $0 : nil }
        }
    }

    /// Ends the recording, and returns what was told. In one turn: what was evaluated before it has been told.
    @AgentQueue private func end() -> [(question: Question, path: Path)] {
        recorder.finish()
        for observation in observations { observation.cancel() }
        return told.withLock { $0 }
    }

    /// Ends the recording and holds that its replay gives what was told, no more and no less.
    @discardableResult
    func replaysExactly() async throws -> Recording {
        // In a turn of its own: what was evaluated before it has been told.
        let told = await end()
        if let folder = ProcessInfo.processInfo.environment["DIALTONE_KEEP_RECORDINGS"] {
            try FileManager.default.copyItem(atPath: file, toPath: "\(folder)/\(name).pcapng")
        }
        let recording = try Recording(contentsOf: file)
        #expect(recording.cutAt == nil)
        let replay = Replay(recording)
        #expect(replay.deviations.isEmpty, "\(replay.deviations)")
        for question in Set(told.map(\.question)) {
            let live = told.filter { $0.question == question }.map(\.path)
            let replayed = replay.changes.filter { $0.question == question }.map(\.path)
            #expect(replayed == live, "\(question)")
        }
        return recording
    }
}

extension NetworkState {
    /// An engine whose first try to follow the kernel fails.
    fileprivate static func refusedOnce(thenOn sockets: borrowing KernelSockets) -> NetworkState {
        let kept = KernelSockets(sharing: sockets)
        var isRefused = true
        return NetworkState { () throws(SystemError) in
            defer { isRefused = false }
            if isRefused { throw SystemError("opening a netlink socket", code: EMFILE) }
            return KernelSockets(sharing: kept)
        }
    }
}

extension Recording {
    fileprivate var marks: [RecordingMark] {
        entries.compactMap { entry in
            guard case .mark(let mark) = entry.content else { return nil }
            return mark
        }
    }
}
