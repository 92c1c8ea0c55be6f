// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// The Lab around this very process, for code that opens sockets on threads of its own.
extension LabNetwork {
    /// Like ``with(_:)``, but the host is the namespace that this process runs in, so that everything in the process is
    /// on the host, whichever thread it runs on, and `/sys` shows it.
    ///
    /// There is one such host: callers take turns. Its links, routes, rules and next hops are gone afterwards; whoever
    /// sets a kernel parameter of all interfaces puts it back.
    @discardableResult
    package static func withThisProcessAsHost<T>(_ body: (LabNetwork) async throws -> T) async throws -> T {
        try await turn.take()
        defer { turn.leave() }
        let lab: LabNetwork
        do {
            lab = try await create(hostIn: .process)
        } catch {
            // Half built is also to be cleaned up; the first error is the one that tells.
            try? await Namespace("this process", in: .process).clear()
            throw error
        }
        let result: Result<T, any Error>
        do {
            result = .success(try await run(body, in: lab))
        } catch {
            result = .failure(error)
        }
        try await lab.host.clear()
        return try result.get()
    }

    private static let turn = Turn()
}

extension Namespace {
    /// Removes what a test may have built here.
    fileprivate func clear() async throws {
        for uplink in Uplink.allCases {
            _ = try? await ip("link delete \(uplink.name)")
        }
        for family in Family.allCases.map(\.rawValue) {
            try await ip("\(family) rule flush")
            try await ip("\(family) rule add lookup main pref 32766")
            for kind in RefusingRoute.allCases {
                try await ip("\(family) route flush table all type \(kind.rawValue)")
            }
        }
        try await ip("rule add lookup default pref 32767")
        try await ip("nexthop flush")
    }
}

/// Lets one after the other have what there is only one of.
private final class Turn: Sendable {
    /// Longer than any single wait, since many may stand in line.
    private static let patience: Duration = .seconds(600)

    private let isTaken = Lock(false)
    private let changes = ChangeSignal()

    func take() async throws {
        try await changes.wait(for: "this process's network to be free", within: Self.patience) {
            isTaken.withLock { isTaken in
                defer { isTaken = true }
                return isTaken ? nil : ()
            }
        }
    }

    func leave() {
        isTaken.withLock { $0 = false }
        changes.notify()
    }
}
