// SPDX-License-Identifier: Apache-2.0

import CDialtoneLabSupport
import DialtoneAPI
import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneProcesses
import DialtoneTestSupport
import Foundation
import Glibc
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration
@testable import DialtoneConnection
@testable import DialtonePersistence

/// A connection to a server of the test's, whose client is woken as the test says.
@AgentQueue
final class WakeFixture {
    let fixture: RegistryFixture
    let server: WakeServer
    let wakes: WakeContext

    init(
        _ settings: WakeSettings?, continuity: Continuity? = nil,
        _ change: (inout ConnectionPolicy) -> Void = { _ in }
    ) throws {
        fixture = RegistryFixture(continuity: continuity)
        wakes = fixture.wakes
        server = try WakeServer()
        fixture.network.path = Path(
            status: .satisfied, source: .loopback, destination: .loopback, isLocalAddress: true, supportsIPv4: true)
        var policy = try fixture.policy("tcp://127.0.0.1:\(server.port)")
        policy.backoff = BackoffPolicy(
            base: .milliseconds(10), multiplier: 1, ceiling: .milliseconds(10), jitter: .full)
        change(&policy)
        _ = try fixture.registry.open("office", policy, wake: settings, owner: thisUser.user, origin: .configuration)
    }

    /// The reports so far: `began data`, `attempted exec`.
    var story: [String] {
        fixture.events.compactMap { event in
            guard let wake = event.wake?.report.map(ConnectionsAPI.Wake.init) else { return nil }
            switch wake.stage {
            case .began, .joined, .acknowledged, .failed:
                return "\(wake.stage.rawValue) \(wake.reasons.map(\.rawValue).joined(separator: ","))"
            case .attempted: return "attempted \(wake.means?.rawValue ?? "")"
            default: return "\(wake.stage.rawValue) \(wake.detail ?? "")"
            }
        }
    }

    var connection: ConnectionsAPI.Connection? { fixture.registry.visible(to: 0).first?.wire }

    func ready(_ epoch: Int = 1) async throws {
        try await eventually("flow \(epoch) stands, and not \(connection as Any)") {
            self.connection?.state == .ready && self.connection?.epoch == epoch
        }
        try await server.accept()
    }

    func tells(_ lines: String...) async throws {
        try await eventually("\(lines), and not \(story)") { self.story.starts(with: lines) }
    }
}

let thisUser = ProgramIdentity(
    user: geteuid(), group: getegid(), groups: [getegid()], name: "tester", home: "/tmp", shell: "/bin/sh")

extension WakeSettings {
    static func script(
        _ script: String, stdio: Bool = true, _ change: (inout WakeSettings) -> Void = { _ in }
    ) -> WakeSettings {
        var settings = WakeSettings()
        settings.command = ["/bin/sh", "-c", script]
        settings.usesStandardStreams = stdio
        settings.identity = thisUser
        settings.pause = .milliseconds(20)
        change(&settings)
        return settings
    }
}

extension WakeFixture {
    /// A client without a process takes the flow and leaves a session on it.
    func takeAndPark() throws {
        let flow = try fixture.registry.take("office", by: nil, for: 0)
        try fixture.registry.park("office", flow.epoch, for: 0)
    }
}

/// One server with one client at a time.
@AgentQueue
final class WakeServer {
    private let listener: LoopbackListener
    nonisolated let port: UInt16
    private var peer: CInt = -1
    private var received: [UInt8] = []
    private var watch: Poller.Registration?
    /// Those that were greeted.
    private var waiting: [CInt] = []

    init() throws {
        listener = try LoopbackListener()
        port = listener.port
    }

    isolated deinit {
        watch?.cancel()
        for client in waiting + [peer] where client >= 0 { close(client) }
    }

    func accept() async throws {
        try await eventually("the server has its client") { watch == nil ? listener.hasClient : !waiting.isEmpty }
        if peer >= 0 { close(peer) }
        (peer, received) = (watch == nil ? try listener.accept().release() : waiting.removeFirst(), [])
    }

    /// Says something to each client as soon as it is there, by its number. A login waits for its answer for ten
    /// seconds, and the test may have to wait longer for its turn.
    func greet(_ text: @escaping @AgentQueue (Int) -> String) throws {
        var count = 0
        watch = try Poller.shared.register(listener.number, .readable) { [weak self] _ in
            guard let self, listener.hasClient, let client = try? listener.accept().release() else { return }
            count += 1
            waiting.append(client)
            let greeting = text(count)
            #expect(Glibc.send(client, greeting, greeting.utf8.count, CInt(MSG_NOSIGNAL)) == greeting.utf8.count)
        }
    }

    func send(_ text: String) { precondition(Glibc.send(peer, text, text.utf8.count, CInt(MSG_NOSIGNAL)) > 0) }

    func hangUp() {
        close(peer)
        peer = -1
    }

    /// The next line that the client sent.
    func line() async throws -> String {
        var end: Int?
        try await eventually("a line from the client") {
            var chunk = [UInt8](repeating: 0, count: 1024)
            let count = recv(peer, &chunk, chunk.count, CInt(MSG_DONTWAIT))
            if count > 0 { received += chunk[..<count] }
            end = received.firstIndex(of: UInt8(ascii: "\n"))
            return end != nil
        }
        let line = String(decoding: received[..<(end ?? 0)], as: UTF8.self)
        received.removeFirst((end ?? -1) + 1)
        return line
    }
}
