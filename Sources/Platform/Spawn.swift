// SPDX-License-Identifier: Apache-2.0

// Which of the two has sigset_t and pid_t depends on which the compiler read first.
internal import CDialtonePlatform
internal import Glibc

/// Starting programs as children of this process (posix_spawn(3)).
package enum Spawn {
    /// What a descriptor of the program is.
    package enum Source {
        /// A copy of one of this process's.
        case descriptor(CInt)
        /// A file, opened to be read.
        case file(String)
    }

    /// Starts a program. It has no signal blocked and takes SIGPIPE as every program does, whatever this process blocks
    /// and ignores.
    ///
    /// - Parameters:
    ///   - operation: what the error says was tried.
    ///   - path: the program's file, which is not looked for on `$PATH`.
    ///   - arguments: with the name under which it is run.
    ///   - environment: all of it, as "NAME=value"; `nil` for this process's.
    ///   - inOwnGroup: whether it leads a process group of its own (setpgid(2)), whose number is the process's.
    ///   - descriptors: what it has beside what it inherits, made in this order.
    /// - Returns: the process, for the caller to wait for.
    /// - Throws: the kernel's refusal: `ENOENT` for a program that is not there.
    package static func start(
        _ operation: @autoclosure () -> String, _ path: String, _ arguments: [String], environment: [String]? = nil,
        inOwnGroup: Bool = false, descriptors: [(place: CInt, source: Source)]
    ) throws(SystemError) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (place, source) in descriptors {
            switch source {
            case .descriptor(let number): posix_spawn_file_actions_adddup2(&actions, number, place)
            case .file(let file): posix_spawn_file_actions_addopen(&actions, place, file, O_RDONLY, 0)
            }
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, usual) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigemptyset(&usual)
        sigaddset(&usual, SIGPIPE)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &usual)
        let group = inOwnGroup ? POSIX_SPAWN_SETPGROUP : 0
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group))
        var process: pid_t = 0
        let code = withCStrings(arguments) { arguments in
            guard let environment else {
                return posix_spawn(&process, path, &actions, &attributes, arguments, environ)
            }
            return withCStrings(environment) {
                posix_spawn(&process, path, &actions, &attributes, arguments, $0)
            }
        }
        guard code == 0 else { throw SystemError(operation(), code: code) }
        return process
    }

    /// Waits until a process that was started here has ended. Its number is its own until ``exitStatus(of:)``.
    ///
    /// - Throws: the kernel's refusal.
    @AgentQueue
    package static func awaitEnd(of process: Int32) async throws(SystemError) {
        let handle = OwnedDescriptor(
            try retryingInterrupts("watching process \(process)") { platform_pidfd_open(process) })
        var continuation: CheckedContinuation<Void, Never>?
        let registration = try Poller.shared.register(handle.number, .readable) { _ in continuation.take()?.resume() }
        await withCheckedContinuation { continuation = $0 }
        registration.cancel()
    }

    /// How a process that has ended did, as ``exitStatus(_:)``. The kernel forgets it then.
    ///
    /// - Throws: the kernel's refusal.
    package static func exitStatus(of process: Int32) throws(SystemError) -> CInt {
        var status: CInt = 0
        try retryingInterrupts("asking how process \(process) ended") { waitpid(process, &status, 0) }
        return exitStatus(status)
    }

    /// How a process ended, as sh(1) says it: its exit status, or 128 and the number of the signal that ended it.
    ///
    /// - Parameter status: as waitpid(2) gives it.
    package static func exitStatus(_ status: CInt) -> CInt {
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}

/// Calls `body` with `strings` as C has them: an array of pointers with a null at its end.
package func withCStrings<Value>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Value
) -> Value {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
}
