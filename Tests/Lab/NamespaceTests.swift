// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import Dispatch
import Glibc
import Testing

/// A namespace.
@Suite(.lab)
struct NamespaceTests {
    @Test func `has its own kernel parameters`() async throws {
        let (one, other) = (try await Namespace.create("one"), try await Namespace.create("other"))
        try await one.sysctl([("net.ipv4.ip_forward", "1")])
        expect(try await one.sysctl("net.ipv4.ip_forward"), is: "1")
        expect(try await other.sysctl("net.ipv4.ip_forward"), is: "0")
        await #expect(throws: SystemError.self) { try await one.sysctl([("net.no.such.parameter", "1")]) }
    }

    @Test func `has a sysfs that shows its links`() async throws {
        try await LabNetwork.with { lab in
            let links = try await lab.router.command(["ls", "/sys/class/net"]).split(separator: "\n")
            withKnownIssue("this container forbids to mount sysfs", isIntermittent: true) {
                #expect(Set(links).isSuperset(of: ["eth0", "wan0", "wan1"]))
            } when: {
                links == ["lo"]
            }
        }
    }

    @Test func `resumes its callers from a thread of the process's own namespace`() async throws {
        let machine = try await Namespace.create("a machine")
        let executor = RecordingExecutor()
        try await withTaskExecutorPreference(executor) {
            let inside = try await machine.run { currentNamespace() }
            #expect(inside != currentNamespace())
        }
        // A thread of Dispatch's that one of those calls starts would stay where its caller is.
        #expect(executor.callers == [currentNamespace()])
    }
}

/// Runs tasks on a queue, and notes in which network namespaces the threads are that ask for it.
private final class RecordingExecutor: TaskExecutor {
    private let seen = Lock<Set<String>>([])
    private let queue = DispatchQueue(label: "recording")

    var callers: Set<String> { seen.withLock { $0 } }

    func enqueue(_ job: consuming ExecutorJob) {
        seen.withLock { _ = $0.insert(currentNamespace()) }
        let job = UnownedJob(job)
        let executor = asUnownedTaskExecutor()
        queue.async { job.runSynchronously(on: executor) }
    }
}

/// The network namespace of the calling thread, as `/proc` names it.
private func currentNamespace() -> String {
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = readlink("/proc/thread-self/ns/net", &buffer, buffer.count)
    return String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
}
