// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneProcesses

/// Processes that are stopped, frozen or gone, and how they are got to run.
@Suite struct ProcessTests {
    @Test func `a stopped process is continued`() async throws {
        let sleeper = try await Sleeper()
        try await sleeper.stop()
        expect(await sleeper.handle.presence, is: [.alive, .stopped])
        expect(try await sleeper.wake(.signal, WakeTargets(signal: SIGCONT)), is: "done")
        try await eventually("it runs") { sleeper.handle.presence == .alive }
    }

    @Test func `another signal continues a stopped process too`() async throws {
        // A shell that is about to read when its trap is due reads first (dash(1)); `wait` has no such moment.
        let sleeper = try await Sleeper("trap 'kill $!; exit 5' USR1; sleep 600 & echo ready; wait")
        try await sleeper.stop()
        expect(try await sleeper.wake(.signal, WakeTargets(signal: SIGUSR1)), is: "done")
        expect(try await sleeper.launch.ended(), is: .exited(status: 5))
    }

    @Test func `a process that is gone is not signalled`() async throws {
        let sleeper = try await Sleeper()
        try await sleeper.handle.signal(SIGKILL)
        _ = try await sleeper.launch.ended()
        expect(await sleeper.handle.presence, is: [])
        let outcome = try await sleeper.wake(.signal, WakeTargets(signal: SIGCONT), owner: thisUser.user)
        #expect(outcome.contains("No such process"), "\(outcome)")
    }

    @Test func `nobody's process is signalled for another user`() async throws {
        let sleeper = try await Sleeper()
        let outcome = try await sleeper.wake(.signal, WakeTargets(signal: SIGUSR1), owner: 4711)
        #expect(outcome.contains("another user's"), "\(outcome)")
        #expect(await sleeper.handle.isAlive)
    }

    @Test func `nobody's group is thawed for another user`() async throws {
        let sleeper = try await Sleeper()
        let outcome = try await sleeper.wake(.thaw, WakeTargets(thaw: .ownGroup), owner: 4711)
        #expect(outcome.contains("another user's"), "\(outcome)")
    }

    @Test(.enabled(if: hasManyUsers, "only root can have another user's process"))
    func `roots connection wakes roots processes alone`() async throws {
        let nobody = ProgramIdentity(
            user: 65534, group: 65534, groups: [], name: "nobody", home: "/", shell: "/bin/sh")
        let sleeper = try await Sleeper(as: nobody)
        let targets = WakeTargets(signal: SIGHUP, thaw: .ownGroup)
        for means in [WakeMeans.signal, .thaw] {
            let outcome = try await sleeper.wake(means, targets, owner: 0)
            #expect(outcome.contains("another user's"), "\(outcome)")
        }
        #expect(await sleeper.handle.isAlive)
    }

    @Test func `the end of a process is told once`() async throws {
        let sleeper = try await Sleeper()
        let count = Counter()
        try await onQueue { try sleeper.handle.onEnd { count.number += 1 } }
        try await sleeper.handle.signal(SIGKILL)
        try await eventually("its end") { count.number == 1 }
        try await onQueue { try sleeper.handle.onEnd { count.number += 1 } }
        try await eventually("its end, to one who asks later") { count.number == 2 }
    }

    @Test func `a descriptor that is no process's is refused`() async throws {
        let error = await #expect(throws: SystemError.self) {
            try await onQueue { _ = try ProcessHandle(OwnedDescriptor(open("/dev/null", O_RDONLY))) }
        }
        #expect(error?.code == EBADF)
    }

    @Test func `a process is found by the descriptor of it`() async throws {
        let handle = try await onQueue {
            let own = try ProcessHandle(getpid())
            let copy = own.withNumber { fcntl($0, F_DUPFD_CLOEXEC, 0) }
            return try ProcessHandle(OwnedDescriptor(copy))
        }
        #expect(handle.number == getpid())
    }

    @Test func `what the kernel tells of a descriptor is the process's number`() {
        #expect(ProcessHandle.number(in: "pos:\t0\nflags:\t02000002\nPid:\t4711\nNSpid:\t4711\n") == 4711)
        #expect(ProcessHandle.number(in: "pos:\t0\nPid:\t0\nNSpid:\t0\n") == 0, "of another PID namespace")
        #expect(ProcessHandle.number(in: "Pid:\t-1\n") == -1, "reaped")
        #expect(ProcessHandle.number(in: "pos:\t0\nflags:\t0100000\n") == nil)
    }

    /// U+0600 makes one character of itself and what follows it.
    @Test func `a process that calls itself anything is stopped only where the kernel says so`() {
        #expect(ProcessStat("7 (sh) T 1 7")?.isStopped == true)
        #expect(ProcessStat("7 (sh) S 1 7")?.isStopped == false)
        #expect(ProcessStat("7 (a\u{600}) T 1 7")?.isStopped == true)
        #expect(ProcessStat("7 (a) T\u{600}) S 1 7")?.isStopped == false)
    }

    /// They all have the number 0.
    @Test func `processes that cannot be seen are told apart`() async throws {
        let (one, other) = (try await Sleeper(), try await Sleeper())
        let handles = try await onQueue {
            try [one, one, other].map { ProcessHandle(try $0.handle.duplicateDescriptor(), number: 0) }
        }
        let isKnown = await handles[0].identity != nil
        #expect(await handles[0].isSame(as: handles[0]))
        expect(await handles[0].isSame(as: handles[1]), is: isKnown)
        #expect(await !handles[0].isSame(as: handles[2]))
    }

    @Test func `groups are found under the mount that shows them`() {
        let mounts = """
            30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
            40 30 0:36 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
            """
        #expect(ControlGroup.directories(of: "/a/b", mounts: mounts) == ["/sys/fs/cgroup/unified/a/b"])
        #expect(ControlGroup.directories(of: "/", mounts: mounts) == ["/sys/fs/cgroup/unified"])
        #expect(ControlGroup.directories(of: "/../outside", mounts: mounts) == [])
        #expect(ControlGroup.directories(of: "/a", mounts: "30 24 0:26 / /sys rw - tmpfs tmpfs rw") == [])
        let part = "40 30 0:36 /kiosk\\040one /cg rw - cgroup2 cgroup2 rw"
        #expect(ControlGroup.directories(of: "/kiosk one/app", mounts: part) == ["/cg/app"])
        #expect(ControlGroup.directories(of: "/kiosk one", mounts: part) == ["/cg"])
        #expect(ControlGroup.directories(of: "/kiosk", mounts: part) == [])
    }
}

/// Processes in control groups of the test's own.
@Suite(.serialized, .enabled(if: GroupTree.isPossible, "no control groups of version 2 can be made here"))
struct ThawTests {
    @Test(arguments: [false, true]) func `a frozen process is thawed and continued where it is stopped too`(
        isStopped: Bool
    )
        async throws
    {
        let (sleeper, tree) = (try await Sleeper(), try GroupTree())
        let group = try tree.make("client")
        try tree.put(sleeper.handle.number, in: group)
        if isStopped { try await sleeper.stop() }
        try await tree.freeze(group)
        expect(await sleeper.handle.presence) { $0 == (isStopped ? [.alive, .frozen, .stopped] : [.alive, .frozen]) }
        // A signal alone does not do it.
        expect(try await sleeper.wake(.signal, WakeTargets(signal: SIGCONT)), is: "done")
        expect(await sleeper.handle.presence) { $0.contains(.frozen) }
        expect(try await sleeper.wake(.thaw, WakeTargets(thaw: .ownGroup)), is: "done")
        expect(await sleeper.handle.presence, is: .alive)
    }

    @Test func `a group is thawed by its path`() async throws {
        let (sleeper, tree) = (try await Sleeper(), try GroupTree())
        let group = try tree.make("client")
        try tree.put(sleeper.handle.number, in: group)
        try await tree.freeze(group)
        expect(try await sleeper.wake(.thaw, WakeTargets(thaw: .group(group))), is: "done")
        expect(await sleeper.handle.presence, is: .alive)
        expect(try await sleeper.wake(.thaw, WakeTargets(thaw: .group(group))), is: "done", "thawed already")
        let missing = try await sleeper.wake(.thaw, WakeTargets(thaw: .group("\(group)/none")))
        #expect(missing.contains("No such file"), "\(missing)")
    }

    @Test func `nothing but a control group is thawed`() async throws {
        let (sleeper, tree) = (try await Sleeper(), try GroupTree())
        let place = TemporaryDirectory()
        let directory = place.path
        for (file, text) in [("cgroup.events", "frozen 1\n"), ("cgroup.freeze", "1\n")] {
            try place.write(text, to: file)
        }
        let outcome = try await sleeper.wake(.thaw, WakeTargets(thaw: .group(directory)))
        #expect(outcome.contains("no control group"), "\(outcome)")
        #expect(place.text("cgroup.freeze") == "1\n")
        // Whoever may write to the directory leads to somebody else's group.
        let group = try tree.make("others")
        try FileManager.default.createSymbolicLink(atPath: "\(directory)/link", withDestinationPath: group)
        try tree.put(sleeper.handle.number, in: group)
        try await tree.freeze(group)
        let linked = try await sleeper.wake(.thaw, WakeTargets(thaw: .group("\(directory)/link")))
        #expect(linked.contains("symbolic links"), "\(linked)")
        expect(await sleeper.handle.presence, is: [.alive, .frozen])
    }

    @Test func `nothing is thawed for another user than its own`() async throws {
        guard hasManyUsers else {
            print("skipped: becoming another user takes root, and more than one user")
            return
        }
        let (sleeper, tree) = (try await Sleeper(as: nobody), try GroupTree())
        let group = try tree.make("client")
        try tree.put(sleeper.handle.number, in: group)
        try await tree.freeze(group)
        let targets = WakeTargets(thaw: .ownGroup)
        expect(try await sleeper.wake(.thaw, targets, owner: 4711), "whose process it is") {
            $0.contains("another user's")
        }
        try #require(chown(group, 4711, 0) == 0)
        expect(try await sleeper.wake(.thaw, targets, owner: nobody.user), "whose group") {
            $0.contains("another user's")
        }
        expect(await sleeper.handle.presence, is: [.alive, .frozen])
        for manager in [0, nobody.user] {
            try #require(chown(group, manager, 0) == 0)
            expect(try await sleeper.wake(.thaw, targets, owner: nobody.user), is: "done")
            try await tree.freeze(group)
        }
    }

    @Test func `what was frozen above it stays frozen`() async throws {
        let (sleeper, tree) = (try await Sleeper(), try GroupTree())
        let above = try tree.make("session")
        let group = try tree.make("session/client")
        try tree.put(sleeper.handle.number, in: group)
        try await tree.freeze(above)
        let outcome = try await sleeper.wake(.thaw, WakeTargets(thaw: .ownGroup))
        #expect(outcome.contains("above"), "\(outcome)")
        expect(await sleeper.handle.presence, is: [.alive, .frozen])
    }
}

/// A number on the agent's queue.
@AgentQueue
private final class Counter {
    var number = 0
    nonisolated init() {}
}

/// A process that waits, killed in the end.
@AgentQueue
final class Sleeper {
    let launch: Launch
    let handle: ProcessHandle
    private let pair = Pair()
    private let activator = Activator(bus: "unix:path=/nowhere")

    init(_ script: String = "echo ready; read -r line", as user: ProgramIdentity = thisUser) async throws {
        launch = try Launch(.script(script, .standard, as: user), socket: pair.program)
        handle = try #require(launch.program).process
        try await eventually("it is there") { [pair] in
            var bytes = [UInt8](repeating: 0, count: 16)
            return recv(pair.test, &bytes, bytes.count, CInt(MSG_DONTWAIT)) > 0
        }
    }

    isolated deinit { try? handle.signal(SIGKILL) }

    func stop() async throws {
        try handle.signal(SIGSTOP)
        try await eventually("it is stopped") { self.handle.isStopped }
    }

    /// What came of an attempt, in words.
    func wake(_ means: WakeMeans, _ targets: WakeTargets, owner: UInt32 = thisUser.user) async throws -> String {
        let order = WakeOrder(
            WakeAttempt(wake: 1, attempt: 1, means: means, reasons: [.data]), targets, connection: "office",
            owner: owner, epoch: 1, socketPath: "/nowhere")
        var text: String?
        activator.perform(order, process: handle, socket: nil, ended: { _ in }) { outcome in
            switch outcome {
            case .done: text = "done"
            case .launched: text = "launched"
            case .failed(let reason): text = reason
            }
        }
        try await eventually("an answer") { text != nil }
        return text ?? ""
    }
}
