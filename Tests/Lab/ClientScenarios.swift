// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// What every client library passes, against the agent that runs: one list for all of them.
@Suite(.lab)
struct ClientScenarios {
    /// Has a driver open the connection "chat" and monitor it.
    ///
    /// - Returns: where its server listens, and the server's end of the socket that stands.
    private func openChat(
        _ driver: ScenarioDriver, on machine: Namespace
    ) async throws -> (listener: TCPSocket, server: TCPSocket) {
        let listener = try await machine.run { try TCPSocket.listening(on: 0) }
        expect(try await driver.ask("open chat tcp://127.0.0.1:\(try listener.port())"), is: "ok")
        let server = try await machine.run { try listener.accept() }
        expect(try await driver.ask("monitor"), is: "ok")
        try await driver.settled("chat", .ready)
        return (listener, server)
    }

    // MARK: - The network

    @Test(arguments: ClientLibrary.allCases)
    func `it asks for a path`(_ library: ClientLibrary) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let driver = try await ScenarioDriver.start(library, on: machine, home)
        expect(try await driver.ask("path 127.0.0.1"), is: "path satisfied -")
        expect(try await driver.ask("path 203.0.113.7"), is: "path unsatisfied noCarrier")
        expect(try await driver.ask("path a..b"), "a name that is none") { $0.hasPrefix("error InvalidTarget ") }
        expect(try await driver.end(), is: .status(0))
    }

    @Test(arguments: ClientLibrary.allCases)
    func `it hears of each change of a path`(_ library: ClientLibrary) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try await machine.landBridge()
        _ = try await home.start(on: machine)
        let driver = try await ScenarioDriver.start(library, on: machine, home)
        expect(try await driver.ask("monitor-path 203.0.113.7"), is: "ok")
        let first = try await driver.told("path satisfied - -")
        try await machine.ip("link set bridge1 down")
        let loss = try await driver.told("path unsatisfied noCarrier ", after: first)
        #expect(loss.text.contains("status,reason"), "\(loss.text)")
        try await machine.ip("link set bridge1 up")
        try await driver.told("path satisfied - ", after: loss)
    }

    // MARK: - The connections

    @Test(arguments: ClientLibrary.allCases)
    func `it goes on after the agent was killed and started again`(_ library: ClientLibrary) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let agent = try await home.start(on: machine)
        let driver = try await ScenarioDriver.start(library, on: machine, home)
        expect(try await driver.ask("monitor"), is: "ok")
        try await driver.told("snapshot -")
        expect(try await driver.ask("open office tcp://192.0.2.1:1"), is: "ok")
        let opened = try await driver.told("event ")
        #expect(opened.text.hasSuffix(" opened office waiting"), "\(opened.text)")

        _ = try await agent.killNow()
        let loss = try await driver.told("lost", after: opened)
        expect(try await driver.ask("list"), "nobody listens") { $0.hasPrefix("error NotRunning ") }
        _ = try await home.start(on: machine)
        // Without a service manager nothing is kept, and what happened meanwhile is not known: the snapshot says so.
        let back = try await driver.told("", after: loss)
        #expect(["* snapshot -", "* gap"].contains(back.text), "\(back.text)")
        expect(try await driver.ask("open office tcp://192.0.2.1:1"), is: "ok")
        let again = try await driver.told("event ", after: back)
        #expect(again.text.hasSuffix(" opened office waiting"), "\(again.text)")
        // The numbers go on: "a new run begins with a higher number".
        let numbers = try [opened, again].map { try #require(Int($0.text.split(separator: " ")[2])) }
        #expect(numbers[0] < numbers[1])
        expect(try await driver.end(), is: .status(0))
    }

    @Test(arguments: ClientLibrary.allCases)
    func `it takes and parks while the server speaks and loses no line`(_ library: ClientLibrary) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let driver = try await ScenarioDriver.start(library, on: machine, home)
        let (_, server) = try await openChat(driver, on: machine)
        let before = try await driver.ask("descriptors")

        for round in 0..<20 {
            // Half of the lines lie there before the socket is taken, half come while it is held.
            try await machine.run { try server.send("early \(round)\n") }
            expect(try await driver.ask("take chat"), is: "taken chat 1")
            expect(try await driver.ask("receive"), is: "received early \(round)")
            try await machine.run { try server.send("late \(round)\n") }
            expect(try await driver.ask("receive"), is: "received late \(round)")
            expect(try await driver.ask("send got \(round)"), is: "ok")
            expect(try await driver.ask("park"), is: "ok")
            expect(try await machine.run { try server.receive() }, is: "got \(round)\n")
        }
        try await hasAsBefore(driver, before)
        // Parked, the next line is the agent's to tell.
        try await machine.run { try server.send("call\n") }
        try await driver.heard("arrived chat ready")
        expect(try await driver.ask("list"), is: "connections chat=ready")
        expect(try await driver.ask("close chat"), is: "ok")
        expect(try await machine.run { try server.receive() }, is: "")
    }

    /// Waits until a driver has as many descriptors as before: a library may close that of a call behind its answer.
    private func hasAsBefore(_ driver: ScenarioDriver, _ before: String) async throws {
        var now = ""
        try await eventually("\(before), as before\n\(now)") {
            now = try await driver.ask("descriptors")
            return now == before
        }
    }

    @Test(arguments: ClientLibrary.allCases)
    func `a descriptor that nobody takes out of its message is closed`(_ library: ClientLibrary) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let driver = try await ScenarioDriver.start(library, on: machine, home)
        let (_, server) = try await openChat(driver, on: machine)
        try await machine.run { try server.send("kept\n") }
        // The first call may open what the library keeps.
        expect(try await driver.ask("list"), is: "connections chat=ready")
        let before = try await driver.ask("descriptors")
        for _ in 0..<10 { expect(try await driver.ask("forget chat"), is: "ok") }
        try await hasAsBefore(driver, before)
        // The same process may take it again, and nothing was read.
        expect(try await driver.ask("take chat"), is: "taken chat 1")
        expect(try await driver.ask("receive"), is: "received kept")
    }

    @Test(arguments: ClientLibrary.allCases)
    func `it hands in a socket of its own`(_ library: ClientLibrary) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let driver = try await ScenarioDriver.start(library, on: machine, home)
        let listener = try await machine.run { try TCPSocket.listening(on: 0) }
        let port = try listener.port()
        expect(try await driver.ask("adopt own tcp://127.0.0.1:\(port) \(port)"), is: "ok")
        let server = try await machine.run { try listener.accept() }
        expect(try await driver.ask("list"), is: "connections own=ready")
        try await machine.run { try server.send("hello\n") }
        expect(try await driver.ask("take own"), "the socket is there") { $0.hasPrefix("taken own ") }
        expect(try await driver.ask("receive"), is: "received hello")
        expect(try await driver.ask("park"), is: "ok")
        // The agent dials again where the client said.
        try await machine.run { server.close() }
        _ = try await machine.run { try listener.accept() }
    }

    @Test(arguments: ClientLibrary.allCases)
    func `an abandoned socket is dialled anew`(_ library: ClientLibrary) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let driver = try await ScenarioDriver.start(library, on: machine, home)
        let watcher = try await ScenarioDriver.start(library, on: machine, home)
        let (listener, server) = try await openChat(watcher, on: machine)
        expect(try await driver.ask("take chat"), is: "taken chat 1")
        expect(try await driver.ask("send half a word"), is: "ok")
        expect(try await machine.run { try server.receive() }, is: "half a word\n")
        // The client ends without parking: what it began nobody else can go on with.
        expect(try await driver.end(), is: .status(0))
        _ = try await machine.run { try listener.accept() }
        try await watcher.heard("state chat ready")
    }

    // MARK: - Errors

    @Test(arguments: ClientLibrary.allCases)
    func `each error is told by its name and the driver goes on`(_ library: ClientLibrary) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let driver = try await ScenarioDriver.start(library, on: machine, home)
        func fails(_ command: String, _ name: String) async throws {
            expect(try await driver.ask(command), "\(name) for \"\(command)\"") { $0.hasPrefix("error \(name) ") }
        }
        try await fails("list", "NotRunning")
        let agent = try await home.start(on: machine)
        expect(try await driver.ask("list"), is: "connections -")
        try await fails("close nobody", "NoSuchConnection")
        try await fails("take nobody", "NoSuchConnection")
        try await fails("open office nonsense", "InvalidRemote")
        expect(try await driver.ask("open office tcp://192.0.2.1:1"), is: "ok")
        try await fails("open office tcp://192.0.2.1:1", "NameTaken")
        try await fails("take office", "NotReady")
        expect(try await driver.ask("acknowledge office 9"), is: "ok")

        let (listener, server) = try await openChat(driver, on: machine)
        expect(try await driver.ask("take chat"), is: "taken chat 1")
        // Another socket takes its place while this one is held.
        expect(try await driver.ask("redial chat"), is: "ok")
        let next = try await machine.run { try listener.accept() }
        try await driver.heard("state chat ready")
        try await fails("park", "StaleEpoch")
        expect(try await driver.ask("take chat"), is: "taken chat 2")
        expect(try await driver.ask("park"), is: "ok")
        try await fails("nonsense", "BadCommand")
        _ = try await agent.terminate()
        try await fails("list", "NotRunning")
        withExtendedLifetime((server, next)) {}
        expect(try await driver.end(), is: .status(0))
    }
}
