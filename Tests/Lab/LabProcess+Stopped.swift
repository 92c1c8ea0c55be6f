// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneTestSupport
import Foundation

extension LabProcess {
    /// Whether none of its threads runs on (proc_pid_stat(5)).
    var isStopped: Bool {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(processID)/task")) ?? []
        return !threads.isEmpty
            && threads.allSatisfy { thread in
                let text = try? String(contentsOfFile: "/proc/\(processID)/task/\(thread)/stat", encoding: .utf8)
                // One that has ended meanwhile does not run either.
                return text.map { $0.contains(") T ") } ?? true
            }
    }

    /// Stops it. The kernel hands the signal to one of its threads, and the others go on until that one has run.
    func stop() async throws {
        signal(SIGSTOP)
        try await eventually("`\(command)` is stopped") { isStopped }
    }
}
