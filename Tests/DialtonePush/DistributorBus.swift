// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtonePush

/// A session bus of a test's own, which starts the distributor of `distributor.py` when it is called.
final class DistributorBus: Sendable {
    static let isThere =
        PrivateBus.Kind.daemon.isThere && systemProgram("gdbus") != nil
        && Program.run("/usr/bin/python3", ["-c", "from gi.repository import Gio"]).status == 0
    static let distributor = "org.unifiedpush.Distributor.test"
    static let app = "org.example.Phone"

    private let bus: PrivateBus
    var address: String { bus.address }

    /// - Parameter hasDistributor: whether the bus knows how to start the distributor from the beginning.
    init(hasDistributor: Bool = true) async throws {
        bus = try PrivateBus(.daemon)
        if hasDistributor { addDistributor() }
        try await bus.start()
    }

    private func addDistributor() {
        let script = #filePath.replacing("DistributorBus.swift", with: "distributor.py")
        bus.addService(Self.distributor, "/usr/bin/python3 \(script) \(bus.file("failure"))")
    }

    /// Tells the bus, which runs, how to start the distributor.
    func installDistributor() async throws {
        addDistributor()
        let driver = "org.freedesktop.DBus"
        let result = await call(driver, "/org/freedesktop/DBus", "\(driver).ReloadConfig", [])
        try #require(result.status == 0, "\(result)")
    }

    /// Has the bus start the distributor.
    ///
    /// - Returns: whether it did not run yet.
    func startDistributor() async throws -> Bool {
        let result = await call(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.StartServiceByName",
            [Self.distributor, "0"])
        try #require(result.status == 0, "\(result)")
        return result.output.contains("uint32 1")
    }

    /// Has registrations fail from now on for this reason.
    func failRegistrations(_ reason: String) { bus.write(reason, to: "failure") }

    /// The app at this bus, with its keys in the directory.
    func registry(_ queue: DispatchQueue = .init(label: "app"), serverKey: String? = nil) -> PushRegistry {
        PushRegistry(
            PushConnector.Settings(
                appID: Self.app, serverKey: serverKey, description: "Calls", busAddress: address,
                environment: ["XDG_STATE_HOME": bus.file("state")]),
            queue: queue)
    }

    var keptFile: String { bus.file("state/dialtone-push/\(Self.app)") }

    /// Keeps a registration with the keys of RFC 8291's appendix A, as if the app had made it before.
    func keepRegistration(_ token: String = "kept") throws {
        let keys = """
            q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94EJXGyvs3942BVGq8e0PTNNmwRzr5VX4m8t7GGpTM5FzFo7OLr4BhZe9MEebhuPI-\
            OztV3ylkYfpJGmQ22ggCLDgUwWTKhx-q-E7bOyf2kiII
            """
        try FileManager.default.createDirectory(
            at: URL(filePath: keptFile).deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data("dialtone-push 1\nvoip \(token) \(keys) \(Self.distributor) -\n".utf8)
            .write(to: URL(filePath: keptFile))
    }

    /// Calls a method of the distributor, as GLib's `gdbus` does, and returns the text that it answers.
    @discardableResult
    func distributor(_ method: String, _ arguments: String...) async throws -> String {
        let result = await call(
            Self.distributor, "/org/unifiedpush/Distributor", "org.example.Test.\(method)", arguments)
        try #require(result.status == 0, "\(method): \(result.error)")
        // ('text',), with the quotes of whichever kind the text has none of.
        return String(result.output.trimmingCharacters(in: .newlines).dropFirst(2).dropLast(3))
    }

    /// The tokens that the distributor has.
    func registeredTokens() async throws -> Set<String> {
        let state = try JSONSerialization.jsonObject(with: Data(try await distributor("State").utf8))
        let registrations = (state as? [String: Any])?["registrations"] as? [String: Any]
        return Set(try #require(registrations).keys)
    }

    /// Calls a method of anybody's.
    private func call(
        _ name: String, _ path: String, _ method: String, _ arguments: [String]
    ) async -> Program.Result {
        let words = ["call", "--address", address, "--dest", name, "--object-path", path, "--method", method]
        return await gdbus(words + arguments)
    }

    func gdbus(_ arguments: [String]) async -> Program.Result {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: Program.run(systemProgram("gdbus") ?? "", arguments))
            }
        }
    }
}
