// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneProcesses
package import DialtoneConnection
package import DialtonePlatform
internal import Glibc

/// A process, by a descriptor of it (pidfd_open(2)): whatever is done by it is done to that process or to none, however
/// often its number was used since.
@AgentQueue
package final class ProcessHandle {
    /// Its number, for /proc and for people; 0 of a process that this one's PID namespace does not show.
    package nonisolated let number: Int32
    private let descriptor: OwnedDescriptor
    /// The connection by which it came, where somebody else is to believe that it did.
    private let connection: OwnedDescriptor?
    private var registration: Poller.Registration?
    private var ended: [@AgentQueue () -> Void] = []

    /// The process of a number. Only of one's own child is it certain to be the one that is meant.
    ///
    /// - Throws: `ESRCH` where there is none.
    package init(_ number: Int32) throws(SystemError) {
        self.number = number
        connection = nil
        descriptor = OwnedDescriptor(
            try retryingInterrupts("watching process \(number)") { activation_open_process(number) })
    }

    /// The process at the other end of a Unix socket, with the socket as the kernel's word for that: a process that
    /// gets it (``duplicateDescriptor()``) can ask the kernel itself.
    ///
    /// - Throws: `ESRCH` where the process has been reaped.
    package init(connectedBy connection: consuming OwnedDescriptor) throws(SystemError) {
        let socket = connection.number
        descriptor = OwnedDescriptor(
            try retryingInterrupts("asking who is connected") { activation_peer_process(socket) })
        guard let number = Self.number(in: FileContent.text(of: "/proc/self/fdinfo/\(descriptor.number)") ?? ""),
            number >= 0
        else { throw SystemError("watching a process by its connection", code: ESRCH) }
        self.number = number
        self.connection = consume connection
    }

    /// One that has ended, and of which there is no more than its number.
    static func ended(_ number: Int32) throws(SystemError) -> ProcessHandle {
        var ends: [CInt] = [-1, -1]
        if pipe(&ends) != 0 { throw .last("noting the end of process \(number)") }
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
        // The end of the stream is there at once, as the end of a process is.
        close(ends[1])
        return ProcessHandle(OwnedDescriptor(ends[0]), number: number)
    }

    /// The process of a descriptor, such as the kernel gives of a socket's other end.
    ///
    /// - Throws: `EBADF` where it is none of a process; `ESRCH` where the process has been reaped.
    package init(_ descriptor: consuming OwnedDescriptor) throws(SystemError) {
        guard let number = Self.number(in: FileContent.text(of: "/proc/self/fdinfo/\(descriptor.number)") ?? "") else {
            throw SystemError("watching a process by its descriptor", code: EBADF)
        }
        guard number >= 0 else { throw SystemError("watching a process by its descriptor", code: ESRCH) }
        self.number = number
        connection = nil
        self.descriptor = descriptor
    }

    /// The number in what the kernel tells of a descriptor: -1 of a process that was reaped, 0 of one that cannot be
    /// seen from here (proc(5)); `nil` where the descriptor is none of a process.
    nonisolated static func number(in text: String) -> Int32? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("Pid:") }
        return line.flatMap { Int32($0.dropFirst(4).drop { $0 == "\t" || $0 == " " }) }
    }

    /// The process of a descriptor that came from its parent, with the number that the parent gave. It may have been
    /// reaped since; then it counts as ended.
    package init(_ descriptor: consuming OwnedDescriptor, number: Int32) {
        self.number = number
        connection = nil
        self.descriptor = descriptor
    }

    isolated deinit { registration?.cancel() }

    /// Calls `handler` when the process has ended; before that, nothing. At once, in a later turn, if it has already.
    package func onEnd(_ handler: @escaping @AgentQueue () -> Void) throws(SystemError) {
        if registration == nil {
            // Readable once all its threads have ended, whether it has been reaped or not.
            registration = try Poller.shared.register(descriptor.number, .readable) { [weak self] _ in self?.end() }
        }
        ended.append(handler)
    }

    /// Calls `ended` when the process has ended, of which nobody sees how, and holds on to the handle until then. At
    /// once where it cannot be watched.
    package func awaitUnseenEnd(_ ended: @escaping @AgentQueue (ProgramEnd) -> Void) {
        do throws(SystemError) {
            try onEnd { withExtendedLifetime(self) { ended(.unseen) } }
        } catch {
            ended(.unseen)
        }
    }

    private func end() {
        registration?.cancel()
        registration = nil
        let handlers = ended
        ended = []
        for handler in handlers { handler() }
    }

    /// Whether it lives.
    package var isAlive: Bool {
        var poll = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&poll, 1, 0) == 0
    }

    /// Whether it comes with the connection by which the process came, for somebody else to believe it.
    package var isProven: Bool {
        switch connection {
        case .some: true
        case .none: false
        }
    }

    /// Whether another handle is one of the same process, as far as it lives.
    package func isSame(as other: ProcessHandle) -> Bool {
        if self === other { return true }
        guard number == other.number, isAlive, other.isAlive else { return false }
        if number > 0 { return true }
        // Those that cannot be seen share a number.
        return identity != nil && identity == other.identity
    }

    /// What no other process is known by; `nil` where the kernel tells of none.
    var identity: UInt64? {
        let number = activation_process_identity(descriptor.number)
        return number == 0 ? nil : number
    }

    /// Sends it a signal.
    ///
    /// - Throws: `ESRCH` where it has ended, `EPERM` where this process may not.
    package func signal(_ signal: Int32) throws(SystemError) {
        if activation_signal(descriptor.number, signal) != 0 { throw .last("sending a signal to process \(number)") }
    }

    /// Another descriptor of it, for somebody else to hold it by: of the connection by which it came, where that is
    /// known, else of the process.
    package func duplicateDescriptor() throws(SystemError) -> OwnedDescriptor {
        switch connection {
        case .some(let connection): return try connection.duplicate()
        case .none: return try descriptor.duplicate()
        }
    }

    /// The process that somebody else gave a descriptor for (``duplicateDescriptor()``).
    ///
    /// - Parameter launched: the process number of a launched program. If that has been reaped, it counts as ended.
    /// - Throws: `ESRCH` where any other has been reaped, `EBADF` where the descriptor is none of a process.
    package static func passed(
        _ descriptor: consuming OwnedDescriptor, launchedAs launched: Int32? = nil
    ) throws(SystemError) -> ProcessHandle {
        var status = stat()
        if fstat(descriptor.number, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK {
            return try ProcessHandle(connectedBy: descriptor)
        }
        if let launched { return ProcessHandle(descriptor, number: launched) }
        return try ProcessHandle(descriptor)
    }

    /// Whether the kernel says that it connected to the socket of this path. Nobody can make believe that of a process
    /// that did not.
    package func hasConnected(to path: String) -> Bool {
        switch connection {
        case .some(let connection): activation_was_accepted(connection.number, path) != 0
        case .none: false
        }
    }

    /// Ends the connection by which it came, for which nobody answers any more.
    package func hangUp() {
        switch connection {
        case .some(let connection): shutdown(connection.number, CInt(SHUT_RDWR))
        case .none: break
        }
    }

    func withNumber<Value>(_ body: (CInt) -> Value) -> Value { body(descriptor.number) }

    /// What keeps it from running.
    package var presence: ClientPresence {
        var presence: ClientPresence = .alive
        // No descriptor of a process tells whether it is stopped: PIDFD_GET_INFO (Linux 6.13) knows its users and its
        // group, and not its state.
        if !isSeen { presence.insert(.hidden) }
        if isStopped { presence.insert(.stopped) }
        if group?.isFrozen == true { presence.insert(.frozen) }
        return isAlive ? presence : []
    }

    /// Whether /proc shows it: not of another user where that is mounted with `hidepid=` (proc(5)), as in a service
    /// with `ProtectProc=invisible`.
    private var isSeen: Bool { access("/proc/\(number)/stat", R_OK) == 0 }

    /// Whether a signal has stopped it.
    var isStopped: Bool { ProcessStat(of: number)?.isStopped ?? false }

    /// The control group that it is in, of version 2; `nil` where there is none to be seen.
    var group: ControlGroup? {
        guard let text = FileContent.text(of: "/proc/\(number)/cgroup"),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("0::") })
        else { return nil }
        // Only now is it certain whose file that was.
        guard isAlive else { return nil }
        return ControlGroup(named: String(line.dropFirst(3)))
    }

    /// The users that it acts as, real and saved: those whose signals reach it (kill(2)). `nil` where it has ended.
    var users: (real: UInt32, saved: UInt32)? {
        guard let text = FileContent.text(of: "/proc/\(number)/status"), let users = Self.users(status: text), isAlive
        else {
            return nil
        }
        return users
    }

    /// The users that a process acts as, by its /proc/PID/status.
    nonisolated static func users(status text: String) -> (real: UInt32, saved: UInt32)? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("Uid:") }) else { return nil }
        let numbers = line.dropFirst(4).split { $0 == "\t" || $0 == " " }.compactMap { UInt32($0) }
        return numbers.count == 4 ? (numbers[0], numbers[2]) : nil
    }
}
