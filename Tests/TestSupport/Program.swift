// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// Runs a program to its end. Foundation's `Process` is not used: it copies 256 bytes of each entry of /proc/self/fd,
/// however short, and reads past the end of the heap when the directory's buffer is full (seen with Swift 6.3).
package enum Program {
    /// How a program ended, and what it wrote.
    package struct Result: Hashable, Sendable {
        /// Its exit status; 128 and the signal's number when a signal ended it; -1 when it could not be started.
        package var status: CInt
        /// Its standard output, or the reason why it could not be started.
        package var output: String
        /// Its standard error.
        package var error: String
    }

    /// Runs `path` and blocks the calling thread until it ends. The program gets no standard input.
    ///
    /// - Parameter environment: its whole environment; `nil` for this process's.
    package static func run(_ path: String, _ arguments: [String], environment: [String: String]? = nil) -> Result {
        // Files, not pipes: whatever it writes, it never waits for a reader.
        guard let output = tmpfile(), let error = tmpfile() else { return failure(path, errno) }
        defer {
            fclose(output)
            fclose(error)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, fileno(output), 1)
        posix_spawn_file_actions_adddup2(&actions, fileno(error), 2)
        var process: pid_t = 0
        let code = withCStrings([path] + arguments) { arguments in
            guard let environment else {
                return posix_spawn(&process, path, &actions, nil, arguments, environ)
            }
            return withCStrings(environment.map { "\($0)=\($1)" }) {
                posix_spawn(&process, path, &actions, nil, arguments, $0)
            }
        }
        guard code == 0 else { return failure(path, code) }
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return Result(status: Spawn.exitStatus(status), output: contents(output), error: contents(error))
    }

    private static func failure(_ path: String, _ code: CInt) -> Result {
        Result(status: -1, output: "\(path): \(String(cString: strerror(code)))", error: "")
    }

    /// What was written to `file` through any descriptor of it.
    private static func contents(_ file: UnsafeMutablePointer<FILE>) -> String {
        rewind(file)
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }
}
