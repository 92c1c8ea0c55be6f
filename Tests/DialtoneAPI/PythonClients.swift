// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation

/// The Python that has PyPI's `varlink` and `asyncvarlink`.
enum PythonClients {
    /// Its path, made at the first use; `nil`, and the reason on standard error, when it cannot be made.
    static let python: String? = {
        let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../..").standardizedFileURL.path
        let made = Program.run("\(root)/scripts/python-varlink", [])
        if made.status != 0 { FileHandle.standardError.write(Data("scripts/python-varlink: \(made.error)\n".utf8)) }
        let program = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
        // It is a link to the interpreter of whoever made it, which others may not be allowed to run.
        return made.status == 0 && FileManager.default.isExecutableFile(atPath: program) ? program : nil
    }()

    /// Runs it to its end.
    static func run(_ arguments: [String]) async -> Program.Result {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: Program.run(python ?? "", arguments)) }
        }
    }
}
