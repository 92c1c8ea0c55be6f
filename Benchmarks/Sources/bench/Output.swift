// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The table goes to standard output; what is being done, and trouble, to standard error.
enum Output {
    /// A line of the result.
    static func write(_ line: String) { write(line, to: STDOUT_FILENO) }

    /// A line on how it goes.
    static func note(_ line: String) { write("bench: \(line)", to: STDERR_FILENO) }

    /// The last line, and the end.
    static func fail(_ line: String, status: CInt) -> Never {
        note(line)
        exit(status)
    }

    private static func write(_ line: String, to descriptor: CInt) {
        var bytes = Array((line + "\n").utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count <= 0, errno != EINTR { return }
            bytes = bytes.dropFirst(max(0, count))
        }
    }
}
