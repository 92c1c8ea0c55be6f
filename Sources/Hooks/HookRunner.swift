// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
package import DialtoneClient
internal import DialtonePlatform
internal import DialtoneSystemd
package import Logging

/// Calls the hooks of a directory with each change, one hook at a time.
package final class HookRunner: Sendable {
    private let directory: HookDirectory
    private let limit: Duration
    private let logger: Logger
    private let changes = Lock(HookChanges())
    private let queue = Lock(HookQueue())
    /// Rings when something was put into the queue.
    private let rings: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - limit: how long a hook may take.
    package init(_ directory: HookDirectory, limit: Duration, _ logger: Logger) {
        (self.directory, self.limit, self.logger) = (directory, limit, logger)
        (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Follows an agent, over its restarts, and calls the hooks.
    ///
    /// - Parameter isReady: called once, when what changes from now on is called.
    /// - Throws: what the agent refuses; if it is not there in the first place, that.
    package func run(
        _ client: DialtoneClient, isReady: @escaping @Sendable () -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            let missing = Lock(2)
            let started: @Sendable () -> Void = {
                let isLast = missing.withLock { missing in
                    missing -= 1
                    return missing == 0
                }
                if isLast { isReady() }
            }
            group.addTask { try await self.followNetwork(client, started) }
            group.addTask { try await self.followConnections(client, started) }
            group.addTask { await self.callHooks() }
            // None ends by itself; what fails one, the agent's return does not mend.
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func followNetwork(_ client: DialtoneClient, _ started: @Sendable () -> Void) async throws {
        var (isKnown, pause) = (false, RetryPause())
        while true {
            do throws(DialtoneError) {
                for try await reply in client.stream(NetworkAPI.MonitorPath.self, .init()) {
                    enqueue(changes.withLock { changes in changes.take(reply).map { [$0] } ?? [] })
                    if !isKnown { started() }
                    (isKnown, pause) = (true, RetryPause())
                }
            } catch {
                guard isKnown, error.isPassing else { throw error }
            }
            try await pause.wait()
        }
    }

    private func followConnections(_ client: DialtoneClient, _ started: @Sendable () -> Void) async throws {
        var isKnown = false
        for try await event in client.connectionEvents() {
            switch event {
            case .agentLost(let error):
                // One that was not there in the first place is an error, as for every other command.
                guard isKnown else { throw error }
                logger.notice("the agent is gone; what changes meanwhile is called when it is back")
            case .reply(let reply):
                enqueue(changes.withLock { changes in changes.take(reply) })
                if !isKnown { started() }
                isKnown = true
            }
        }
    }

    private func enqueue(_ changes: [HookChange]) {
        queue.withLock { queue in
            for change in changes { queue.append(change) }
        }
        bell.yield()
    }

    private func callHooks() async {
        var refused: Set<HookDirectory.Refusal> = []
        for await _ in rings {
            while !Task.isCancelled, let (change, leftOut) = queue.withLock({ $0.takeFirst() }) {
                if leftOut > 0 {
                    logger.log(
                        level: .warning, .hookChangesLeftOut, "hooks are too slow: changes were left out",
                        metadata: ["left-out": "\(leftOut)"])
                }
                refused = await call(change, refused)
            }
        }
    }

    /// Calls each hook with a change.
    ///
    /// - Parameter refused: the files that the last call told of.
    /// - Returns: the files that it refused to run.
    private func call(
        _ change: HookChange, _ refused: Set<HookDirectory.Refusal>
    ) async -> Set<HookDirectory.Refusal> {
        let content = directory.content()
        for refusal in content.refusals where !refused.contains(refusal) {
            logger.log(
                level: .warning, .hookRefused, "a hook is not run: \(refusal.why)",
                metadata: ["hook": "\(refusal.path)"])
        }
        for hook in content.hooks { await call(hook, change) }
        // What was mended and is wrong again is said again.
        return Set(content.refusals)
    }

    private func call(_ hook: String, _ change: HookChange) async {
        let failure: String
        do throws(SystemError) {
            switch try await HookProcess.run(hook, change, limit: limit) {
            case .exited(0): return
            case .exited(let status) where status > 128: failure = "signal \(status - 128) ended it"
            case .exited(let status): failure = "exit status \(status)"
            case .overran: failure = "it was ended after \(limit)"
            }
        } catch {
            failure = "\(error)"
        }
        logger.log(
            level: .warning, .hookFailed, "a hook failed: \(failure)",
            metadata: ["hook": "\(hook)", "change": "\(change.name.rawValue)"])
    }
}
