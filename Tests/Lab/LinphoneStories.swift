// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

/// A linphone that knows what the agent knows about the network. docs/linphone.md has the figures that are printed.
@Suite(.lab, .server("linphonec"), .server("kamailio"), .headersOfLinphone)
struct LinphoneStories {
    private let home: DaemonHome

    init() throws {
        home = try DaemonHome()
    }

    @Test(arguments: [true, false])
    func `it registers anew when an uplink is lost`(hasBridge: Bool) async throws {
        try await LabNetwork.with { lab in
            let server = try await LabServer.start(.registrar, on: lab.server)
            _ = try await home.start(on: lab.host)
            let phone = try await linphone(on: lab.host, hasBridge: hasBridge)
            let first = try await server.registers(from: .wan0)
            if hasBridge { _ = try await phone.line(containing: "dialtone: there is a path") }
            let loss = BootClock.now()
            try await lab.takeDown(.wan0)
            let second = try await server.registers(from: .wan1, after: first)
            print("\(hasBridge ? "With" : "Without") the bridge, registered anew after \(second.time - loss)")
        }
    }

    @Test func `it registers anew when only the route to its server changes`() async throws {
        try await LabNetwork.with { lab in
            let server = try await LabServer.start(.registrar, on: lab.server)
            try await lab.preferDefaultRoute(via: .wan1)
            try await lab.host.ip("route add 203.0.113.0/24 via \(Uplink.wan0.gateway(.v4))")
            _ = try await home.start(on: lab.host)
            let phone = try await linphone(on: lab.host)
            let first = try await server.registers(from: .wan0)
            _ = try await phone.line(containing: "dialtone: there is a path")
            let loss = BootClock.now()
            // The kernel removes the route without a message.
            try await lab.takeDown(.wan0)
            let second = try await server.registers(from: .wan1, after: first)
            print("With the bridge and a route of the server's own, registered anew after \(second.time - loss)")
        }
    }

    @Test func `it works without an agent, and hears one that starts`() async throws {
        try await LabNetwork.with { lab in
            let server = try await LabServer.start(.registrar, on: lab.server)
            let phone = try await linphone(on: lab.host)
            var last = try await server.registers(from: .wan0)
            _ = try await phone.line(containing: "dialtone: no word of the network")
            let agent = try await home.start(on: lab.host)
            var heard = try await phone.line(containing: "dialtone: there is a path")
            try await lab.takeDown(.wan0)
            heard = try await phone.line(after: heard, containing: "dialtone: the path changed")
            last = try await server.registers(from: .wan1, after: last)
            // No path at all, and then no agent to say so: it tries by itself.
            try await lab.takeDown(.wan1)
            heard = try await phone.line(after: heard, containing: "dialtone: no path")
            try await agent.killNow()
            _ = try await phone.line(after: heard, containing: "dialtone: no word of the network")
            try await lab.bringUp(.wan1)
            _ = try await server.registers(from: .wan1, after: last)
            // It ends as it does without the bridge.
            try phone.send("quit\n")
            expect(try await phone.exit(), is: .status(0))
        }
    }

    /// Starts a linphone that registers with the Lab's server.
    private func linphone(on machine: Namespace, hasBridge: Bool = true) async throws -> LabProcess {
        let address = LabNetwork.serverAddress(.v4)
        let settings = """
            [sip]
            default_proxy=0
            sip_port=-1
            sip_tcp_port=-1
            sip_tls_port=-1

            [proxy_0]
            reg_proxy=<sip:\(address);transport=tcp>
            reg_identity=sip:phone@\(address)
            reg_expires=3600
            reg_sendregister=1
            """
        var environment = ["HOME": home.directory, "DIALTONE_SOCKET": home.socket]
        if hasBridge { environment["LD_PRELOAD"] = try await Self.bridge.value }
        try Data(settings.utf8).write(to: URL(filePath: "\(home.directory)/linphonerc"))
        // Its database is there. It ends if it cannot make it.
        let database = "\(home.directory)/.local/share/linphone"
        try FileManager.default.createDirectory(atPath: database, withIntermediateDirectories: true)
        return try await machine.spawn(
            ["linphonec", "-d", "6", "-c", "\(home.directory)/linphonerc"], environment: environment)
    }

    private static let bridge = Task {
        let folder = "\(SourceTree.root)/.build/clients-linphone"
        try await CLibrary.make("all", of: "Linphone", "BUILD=\(folder)", "CFLAGS=-O1 -g")
        return "\(folder)/dialtone-linphone.so"
    }
}

extension LabServer {
    /// Waits until a client asks to be registered, from an uplink's address.
    fileprivate func registers(from uplink: Uplink, after line: LabProcess.Line? = nil) async throws -> LabProcess.Line
    {
        try await log.line(after: line, containing: "registers from \(uplink.address(.v4)):")
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where linphone's headers are not installed.
    fileprivate static var headersOfLinphone: Self {
        let search = Program.run("/bin/sh", ["-c", "pkg-config --exists linphone"])
        return .enabled(if: search.status == 0, "liblinphone-dev is not installed")
    }
}
