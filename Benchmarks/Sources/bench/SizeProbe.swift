// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// How large the daemon's file is without what only debuggers read.
enum SizeProbe {
    /// In bytes.
    static func measure(_ daemon: String) throws -> Int {
        let stripped = "/tmp/dialtoned-stripped-\(getpid())"
        defer { unlink(stripped) }
        try Child.run("/usr/bin/strip -o \(stripped) \(daemon)")
        var entry = stat()
        return stat(stripped, &entry) == 0 ? Int(entry.st_size) : 0
    }
}
