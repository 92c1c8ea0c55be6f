// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import Reachability

/// An engine on a machine of the Lab, with questions that it answers and the paths they have now.
final class EngineRecorder: Sendable {
    let engine: NetworkState
    let changes = ChangeSignal()
    private let log: Log

    /// An engine that is asked nothing yet.
    static func start(
        on machine: Namespace, receiveBuffer: Int = KernelSockets.defaultReceiveBuffer
    ) async throws -> EngineRecorder {
        let sockets = try await machine.run { try KernelSockets(receiveBuffer: receiveBuffer) }
        return await EngineRecorder(NetworkState(sockets))
    }

    /// Of an engine that runs already.
    init(_ engine: NetworkState) {
        self.engine = engine
        log = Log()
    }

    /// Observes each of `questions`, and returns when all have a path.
    func watch(_ questions: [Question]) async throws {
        await log.watch(questions, on: engine, changes)
        try await changes.wait(for: "the first paths") { await log.paths.count >= questions.count ? () : nil }
    }

    /// The paths now.
    func paths() async -> [Question: Path] { await log.paths }

    /// Waits for a question's path to be as it should.
    @discardableResult
    func path(to question: Question, _ awaited: String, where matches: (Path) -> Bool) async throws -> Path {
        var last: Path?
        return try await changes.wait(for: awaited, describe: { "\(last.map { "\($0)" } ?? "no path")" }) {
            last = await log.paths[question]
            return last.flatMap { matches($0) ? $0 : nil }
        }
    }

    /// Waits until the verdicts that stand are those which the kernel's state makes.
    func settle(after what: String) async throws {
        var wrong: [NetworkState.Discrepancy] = []
        try await changes.wait(
            for: "the verdicts to be right after \(what)",
            describe: { wrong.map(\.description).joined(separator: "\n") }
        ) {
            wrong = await engine.audit()
            if wrong.isEmpty { return () }
            // What stands may be right at the second look, of which nobody is told if nothing differs.
            await log.remind(changes)
            return nil
        }
    }

    /// Waits until the engine has nothing more to look at.
    func rest() async throws {
        try await changes.wait(for: "the engine to be at rest") {
            if await engine.isAtRest { return () }
            await log.remind(changes)
            return nil
        }
    }

    @AgentQueue private final class Log {
        var paths: [Question: Path] = [:]
        private var observations: [PathObservation] = []

        nonisolated init() {}

        func watch(_ questions: [Question], on engine: NetworkState, _ changes: ChangeSignal) {
            for question in questions {
                observations.append(
                    engine.observe(question) { [weak self] path, _ in
                        self?.paths[question] = path
                        changes.notify()
                    })
            }
        }

        func remind(_ changes: ChangeSignal) {
            _ = Timers.shared.schedule(after: .milliseconds(20)) { changes.notify() }
        }
    }
}

extension Question {
    /// A question about an address.
    static func address(_ text: String, _ change: (inout Target) -> Void = { _ in }) -> Question {
        var target = Target(.init(text), port: 1883)
        change(&target)
        return .host(target)
    }
}
