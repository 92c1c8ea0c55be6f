// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Glibc

/// A process that does nothing until it is ended.
final class Sleeper {
    let process: pid_t
    private var hasEnded = false

    init() throws {
        var process: pid_t = 0
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("1000"), nil]
        defer { for argument in arguments { free(argument) } }
        let result = posix_spawn(&process, "/bin/sleep", nil, nil, &arguments, environ)
        if result != 0 { throw SystemError("starting sleep", code: result) }
        self.process = process
    }

    // One that outlived the test would keep its output open, for which whoever runs the tests waits.
    deinit { end() }

    func end() {
        // The number may be another's afterwards.
        if hasEnded { return }
        hasEnded = true
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }
}
