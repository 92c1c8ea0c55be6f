// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtonePlatform
import Foundation
import Testing

/// What interfaces cost, by NetworkManager's word on a bus of the test's own. See `Tests/LabNetworkManager`.
@Suite(.lab, .enabled(if: Bus.isThere, "there is no dbus-daemon here"))
struct CostTests {
    @Test func `NetworkManager's word is followed as it comes, changes and goes`() async throws {
        let machine = try await Namespace.island()
        let (home, bus) = (try DaemonHome(), try Bus())
        _ = try await home.start(on: machine, environment: bus.environment)
        try await machine.landBridge()
        let paths = PathStream(of: home.client)
        try await paths.cost("nobody's word", false, nil)

        var dbus = try await bus.start(on: machine)
        var manager = try await bus.manager(on: machine, "cdc-wdm0", "bridge0", "3", "bridge1", "-", "1")
        try await paths.cost("a guess", true, .guess)
        try manager.tell("strength 0", "metered 0 2")
        try await paths.cost("a profile's no", false, .networkManager)
        try manager.tell("metered 0 4")
        try await paths.cost("a guess of no", false, .guess)
        try manager.tell("remove 0")
        try await paths.cost("no device", false, nil)
        try manager.tell("add bridge0 - 1")
        try await paths.cost("a new device", true, .networkManager)

        _ = try await manager.process.killNow()
        try await paths.cost("no manager", false, nil)
        manager = try await bus.manager(on: machine, "bridge0", "-", "1")
        try await paths.cost("a manager that came back", true, .networkManager)

        _ = try await dbus.killNow()
        try await paths.cost("no bus", false, nil)
        dbus = try await bus.start(on: machine)
        manager = try await bus.manager(on: machine, "bridge0", "-", "3")
        try await paths.cost("a bus that came back", true, .guess)
    }

    @Test func `the configuration stands above NetworkManager`() async throws {
        let machine = try await Namespace.island()
        let (home, bus) = (try DaemonHome("[network]\ninexpensive = ['bridge0']"), try Bus())
        _ = try await bus.start(on: machine)
        let manager = try await bus.manager(on: machine, "bridge0", "-", "1", "bridge1", "-", "1")
        let daemon = try await home.start(on: machine, environment: bus.environment)
        try await machine.landBridge()
        // Known of the one interface when it is of the other.
        _ = try await daemon.line(containing: "bridge1")
        let paths = PathStream(of: home.client)
        try await paths.cost("the user's no", false, .configuration)
        try home.configure("[network]\nexpensive = ['bridge0']\nconstrained = ['bridge0']")
        daemon.signal(SIGHUP)
        try await paths.cost("the user's yes", true, .configuration)
        try home.configure("")
        daemon.signal(SIGHUP)
        try await paths.cost("nothing more of the user's", true, .networkManager)
        try manager.tell("metered 0 0")
        try await paths.cost("nothing more at all", false, nil)
    }
}

/// The network's path as the daemon tells it.
private final class PathStream: Sendable {
    private let changes = ChangeSignal()
    private let told = Lock<NetworkAPI.Path?>(nil)
    private let task = Lock<Task<Void, Never>?>(nil)

    init(of client: DialtoneClient) {
        let stream = client.stream(NetworkAPI.MonitorPath.self, .init())
        let task = Task { [weak self] in
            do {
                for try await reply in stream {
                    self?.told.withLock { $0 = reply.path }
                    self?.changes.notify()
                }
            } catch {
                // The daemon is gone; who waits for more finds out by waiting.
            }
        }
        self.task.withLock { $0 = task }
    }

    deinit { task.withLock { $0?.cancel() } }

    /// Waits for the path's interface to have that cost.
    func cost(_ awaited: String, _ isExpensive: Bool, _ source: NetworkAPI.Interface.CostSource?) async throws {
        try await changes.wait(for: awaited, describe: { told.withLock { "\($0 as Any)" } }) {
            told.withLock { path in
                path?.expensive == isExpensive && path?.interface?.expensive == isExpensive
                    && path?.interface?.costSource == source ? () : nil
            }
        }
    }
}
