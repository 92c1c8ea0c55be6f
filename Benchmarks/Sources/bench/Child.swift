// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// A program started by a probe. The kernel kills it with the probe's main thread.
struct Child: ~Copyable {
    let processID: pid_t

    /// Starts a program. What it writes goes to where the probe's own errors go, its output to `output` if there is
    /// one.
    init(_ arguments: [String], output: CInt = STDERR_FILENO) throws {
        let null = try opened("opening /dev/null", open("/dev/null", O_RDWR | O_CLOEXEC))
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        processID = try retryingInterrupts("starting \(arguments[0])") {
            clab_spawn(&pointers, null.number, output, STDERR_FILENO)
        }
    }

    deinit {
        kill(processID, SIGKILL)
        waitpid(processID, nil, 0)
    }

    /// Runs a program, given as in a shell, to its end.
    static func run(_ command: String) throws {
        let status = try Child(command.split(separator: " ").map(String.init)).wait()
        if status != 0 { throw SystemError("running `\(command)`", code: EINVAL) }
    }

    /// Waits for its end, and returns how it ended as wait(2) has it.
    private consuming func wait() -> CInt {
        var status: CInt = 0
        while waitpid(processID, &status, 0) < 0, errno == EINTR {}
        discard self
        return status
    }
}
