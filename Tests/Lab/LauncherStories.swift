// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Glibc
import Testing

/// What the launcher has the service manager do, and what it does where that one does not. Under the real systemd:
/// ``BootStories``.
@Suite(.lab, .anotherUser, .launcher)
struct LauncherStories {
    /// Says to the server whose it is, how many lines of its control groups name its unit, and what it read.
    private static func program(_ input: String, _ output: String) -> String {
        let script = "read line\(input); echo $(id -un) $(grep -c dialtone-office /proc/self/cgroup) $line\(output)"
        return "exec = [\"/bin/sh\", \"-c\", \"\(script)\"]"
    }

    @Test(arguments: [false, true])
    func `a program is a unit with no right beside its owner's, for as long as it runs`(
        ofStreams: Bool
    ) async throws {
        let program = ofStreams ? "stdio = true, " + Self.program("", "") : Self.program(" <&3", " >&3")
        let (machine, _, server) = try await LauncherMachine.start(wake: program)
        try await machine.startBus()
        let systemd = try await machine.startSystemd()
        try server.send("ring\n")
        expect(try await machine.network.run { try server.receive() }, is: "daemon 1 ring\n")
        let asked = try await systemd.line(containing: "transient dialtone-office-")
        #expect(asked.text.wholeMatch(of: /transient dialtone-office-\d+\.service fail/) != nil, "\(asked.text)")
        // How it ended is known, though nobody's child: the flow is parked with a session on it.
        try await eventually("the flow is parked") { try await machine.office().session == .open }
        _ = try await systemd.line(after: asked, containing: "gone dialtone-office-")
        #expect(systemd.lines.filter { $0.text.hasPrefix("transient") }.count == 1)

        let properties = Set(systemd.lines.map(\.text).filter { $0.contains("=") })
        let command = try #require(properties.first { $0.hasPrefix("ExecStart=") })
        #expect(
            command.hasPrefix("ExecStart=/bin/sh [/bin/sh] [-c] [") == ofStreams
                && command.contains("/dialtone-launcher] [--pass-socket] [/bin/sh] [-c] [") != ofStreams, "\(command)")
        let user = try #require(getpwnam(LauncherMachine.owner)).pointee
        let variables = properties.filter { $0.hasPrefix("Environment=") }
        #expect(variables.isSuperset(of: ["Environment=DIALTONE_NAME=office", "Environment=DIALTONE_REASON=data"]))
        #expect(variables.contains("Environment=LISTEN_FDS=1") != ofStreams)
        #expect(
            properties.subtracting(variables).subtracting([command]) == [
                "Description=Program of the Dialtone connection office", "Type=exec", "User=\(user.pw_uid)",
                "WorkingDirectory=-\(String(cString: user.pw_dir))", "TimeoutStartUSec=10000000",
                "StandardInputFileDescriptor=a socket",
                ofStreams ? "StandardOutputFileDescriptor=a socket" : "StandardOutput=journal",
                "StandardError=journal", "SyslogIdentifier=dialtone-office", "NoNewPrivileges=yes",
                "CapabilityBoundingSet=0", "IgnoreSIGPIPE=no", "UMask=18", "KillMode=process", "AddRef=yes",
                "CollectMode=inactive-or-failed",
            ])
    }

    /// Why there is no unit.
    enum Obstacle: CaseIterable {
        case systemdRefuses, noSystemd, noBus

        /// What is told of it.
        var text: String {
            switch self {
            case .systemdRefuses: "Interactive authentication required."
            case .noSystemd: "org.freedesktop.systemd1"
            case .noBus: "there is no bus"
            }
        }
    }

    @Test(arguments: Obstacle.allCases)
    func `what is no unit does not run, which is told, and tried again until it is one`(
        obstacle: Obstacle
    ) async throws {
        let wake = "attempts = 20, pause = \"200ms\", longest_pause = \"1s\", " + Self.program(" <&3", " >&3")
        let (machine, launcher, server) = try await LauncherMachine.start(wake: wake)
        if obstacle != .noBus { try await machine.startBus() }
        var systemd: LabProcess?
        if obstacle == .systemdRefuses {
            systemd = try await machine.startSystemd()
            try systemd?.send("refuse\n")
            _ = try await systemd?.line(containing: "refuse")
        }
        let recorder = try await machine.home.recorder()
        try server.send("ring\n")
        func failure(after number: Int) async throws -> ConnectionsAPI.Event {
            try await recorder.event("an attempt that failed", after: number) { $0.wake?.stage == .attemptFailed }
        }
        let first = try #require(try await failure(after: 0).wake)
        #expect(first.means == .exec)
        #expect(first.detail?.hasPrefix("running /bin/sh: ") == true, "\(first.detail ?? "")")
        #expect(first.detail?.contains(obstacle.text) == true, "\(first.detail ?? "")")
        _ = try await launcher.line("the refusal") {
            $0.text.contains("a client was not woken") && $0.text.contains(obstacle.text)
        }
        let second = try #require(try await failure(after: recorder.events.count).wake)
        #expect(second.attempts > first.attempts)
        expect(try await machine.office().wake, is: first.number, "the wake stands")

        if obstacle == .noBus { try await machine.startBus() }
        if let systemd {
            try systemd.send("accept\n")
            _ = try await systemd.line(containing: "accept")
        } else {
            systemd = try await machine.startSystemd()
        }
        // A program that the launcher had run itself would have been in no unit, and would have read it before.
        expect(try await machine.network.run { try server.receive() }, is: "daemon 1 ring\n")
        try await eventually("the flow is parked, still the same") {
            let office = try await machine.office()
            return office.session == .open && office.epoch == 1 && office.wake == nil
        }
    }

    @Test func `a program that cannot be run is told in words, and leaves the flow as it was`() async throws {
        let (machine, _, server) = try await LauncherMachine.start(
            wake: "attempts = 1, stdio = true, exec = [\"/opt/missing\"]")
        try await machine.startBus()
        let systemd = try await machine.startSystemd()
        let recorder = try await machine.home.recorder()
        try server.send("ring\n")
        let failure = try await recorder.event("an attempt that failed") { $0.wake?.stage == .attemptFailed }
        #expect(
            failure.wake?.detail
                == "running /opt/missing: systemd could not run the program (203/EXEC); see its journal")
        _ = try await recorder.event("the end of the wake") { $0.wake?.stage == .failed }
        _ = try await systemd.line(containing: "gone dialtone-office-")
        let flow = try await machine.home.client.take("office")
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = recv(flow.descriptor.number, &bytes, bytes.count, CInt(MSG_DONTWAIT))
        #expect(String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self) == "ring\n")
        #expect(flow.epoch == 1)
    }

    @Test func `of an owner's stopped processes, the one that parked the flow is continued`() async throws {
        let (machine, _, server) = try await LauncherMachine.start(wake: "signal = true")
        // Each has the flow once. The first to park it stays connected, to the agent, and is the owner's.
        let script = """
            import os, signal, socket
            from sleeping_client import Agent
            agent = Agent()
            def read(size):
                taken = agent.call("Take", name="office")
                flow = socket.socket(fileno=agent.descriptors.pop(taken["fileDescriptor"]))
                text = flow.recv(size) if size else b""
                if text: flow.sendall(b"%d %s" % (os.getpid(), text))
                agent.call("Park", name="office", epoch=taken["epoch"])
            read(0)
            print("parked", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
            read(64)
            """
        let first = try await Self.stopped(try await machine.client(script))
        let second = try await Self.stopped(try await machine.client(script))
        try server.send("ring\n")
        expect(try await machine.network.run { try server.receive() }, is: "\(second.processID) ring\n")
        #expect(first.isStopped)
        expect(try await second.exit(), is: .status(0))
        // Nor is it woken in the place of the one that has ended, for want of another.
        let recorder = try await machine.home.recorder()
        try server.send("again\n")
        _ = try await recorder.event("the end of the wake") { $0.wake?.stage == .failed }
        #expect(first.isStopped)
    }

    private static func stopped(_ client: LabProcess) async throws -> LabProcess {
        _ = try await client.line(containing: "parked")
        try await eventually("it has stopped itself") { client.isStopped }
        return client
    }
}
