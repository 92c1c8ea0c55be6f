// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Dispatch

/// Says that something may have changed, to those who wait for a condition.
///
/// Waiting goes by events: the condition is looked at once, and again after each ``notify()``, never on a timer. The
/// limit on a wait exists so that a failure ends; it is generous, since a busy machine is not a bug.
package final class ChangeSignal: Sendable {
    /// How long a wait lasts unless told otherwise. Nothing in the Lab takes longer than a second on an idle machine.
    package static let generousLimit: Duration = .seconds(90)

    private struct State {
        var changes: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        var nextWaiter: UInt64 = 0
    }

    private let state = Lock(State())

    /// A signal that nobody waits for yet.
    package init() {}

    /// Lets all who wait look at their condition again. Callable from any thread.
    package func notify() {
        let waiters = state.withLock { state in
            state.changes += 1
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume(returning: true) }
    }

    /// Returns the first value of `condition` that is not `nil`; asks again after each change.
    ///
    /// - Parameters:
    ///   - awaited: what is waited for, for the error's sentence.
    ///   - describe: the state at the end of a wait in vain.
    /// - Throws: what `condition` throws, or ``LabError/timedOut(awaited:limit:state:)``.
    package func wait<T>(
        for awaited: String, within limit: Duration = generousLimit, describe: () -> String = { "no change" },
        _ condition: () async throws -> T?
    ) async throws -> T {
        let deadline = BootClock.now() + limit
        while true {
            let seen = state.withLock(\.changes)
            if let value = try await condition() { return value }
            guard await change(after: seen, until: deadline) else {
                throw LabError.timedOut(awaited: awaited, limit: limit, state: describe())
            }
        }
    }

    /// Whether there was a change after the `seen`th before `deadline`; returns as soon as there was.
    private func change(after seen: UInt64, until deadline: Duration) async -> Bool {
        let left = deadline - BootClock.now()
        guard left > .zero else { return state.withLock(\.changes) > seen }
        return await withCheckedContinuation { continuation in
            let waiter: UInt64? = state.withLock { state in
                guard state.changes == seen else { return nil }
                state.nextWaiter += 1
                state.waiters[state.nextWaiter] = continuation
                return state.nextWaiter
            }
            guard let waiter else { return continuation.resume(returning: true) }
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(left.milliseconds) + 1)) {
                self.state.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume(returning: false)
            }
        }
    }
}
