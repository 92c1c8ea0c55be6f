// SPDX-License-Identifier: Apache-2.0

package import Dispatch

/// The one serial queue on which all mutable state of the process's network agent lives.
///
/// Declarations marked `@AgentQueue` run on ``queue`` and nowhere else, and the compiler proves it. Dispatch sources
/// are created with ``queue`` as their target, so their handlers are already isolated; they say so to the compiler with
/// ``assumeIsolated(_:)``, which costs a check and no hop.
///
/// One queue, not one per object, because a kernel event, the verdict it changes, the flow it closes and the line it
/// sends to a subscriber are one causal chain: on one queue it runs to its end in one turn, without locks, and tests
/// can reason about order.
@globalActor
package final actor AgentQueue {
    /// The actor that `@AgentQueue` stands for.
    package static let shared = AgentQueue()

    /// The queue itself. Of no particular quality of service: what is urgent runs on the poller's thread, and Dispatch
    /// would try to raise its workers' priority, which takes a privilege, and complain of the refusal.
    package static let queue = DispatchQueue(label: "org.dialtone.agent")

    private nonisolated let executor = Executor()

    /// The executor that runs this actor's jobs on ``queue``.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private init() {}

    /// Runs `operation` at once, in the current turn of the queue; traps when called from anywhere else.
    package static func assumeIsolated<T: Sendable>(_ operation: @AgentQueue () throws -> T) rethrows -> T {
        // What `preconditionIsolated` would come to as well, after microseconds of asking the runtime for the current
        // task and for the main actor's executor: it knows of no task on a thread that came from the poller.
        dispatchPrecondition(condition: .onQueue(queue))
        // `MainActor.assumeIsolated` in the standard library is written the same way: the precondition above is the
        // proof that the cast drops, and the type system has no other spelling of it for a global actor.
        return try withoutActuallyEscaping(operation) { escaping in
            try unsafeBitCast(escaping, to: (() throws -> T).self)()
        }
    }

    /// Runs `operation` in a turn of the queue of its own, after everything that is queued already.
    package nonisolated static func async(_ operation: @escaping @Sendable @AgentQueue () -> Void) {
        queue.async { assumeIsolated(operation) }
    }

    private final class Executor: SerialExecutor {
        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            let executor = asUnownedSerialExecutor()
            AgentQueue.queue.async { job.runSynchronously(on: executor) }
        }

        func checkIsolated() {
            dispatchPrecondition(condition: .onQueue(AgentQueue.queue))
        }
    }
}
