// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The Python that has PyPI's `varlink` and `asyncvarlink`.
enum PythonClients {
    /// Its path, made at the first use; `nil`, and the reason on standard error, when it cannot be made.
    static let python: String? = {
        let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../..").standardizedFileURL.path
        let (status, output, error) = run("\(root)/scripts/python-varlink", [])
        if status != 0 { FileHandle.standardError.write(Data("scripts/python-varlink: \(error)\n".utf8)) }
        let program = output.trimmingCharacters(in: .whitespacesAndNewlines)
        // It is a link to the interpreter of whoever made it, which others may not be allowed to run.
        return status == 0 && FileManager.default.isExecutableFile(atPath: program) ? program : nil
    }()

    /// Runs it to its end.
    static func run(_ arguments: [String]) async -> (status: Int32, output: String, error: String) {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: run(python ?? "", arguments)) }
        }
    }

    private static func run(_ program: String, _ arguments: [String]) -> (Int32, String, String) {
        let process = Process()
        let (output, error) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = error
        do { try process.run() } catch { return (-1, "", "\(error)") }
        // What either writes is less than a pipe holds, so reading one after the other cannot lock up.
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let complaint = String(decoding: error.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, text, complaint)
    }
}
