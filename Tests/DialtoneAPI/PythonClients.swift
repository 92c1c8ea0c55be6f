// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation

/// The Python that has PyPI's `varlink` and `asyncvarlink`.
enum PythonClients {
    /// Runs it to its end.
    static func run(_ arguments: [String]) async -> Program.Result {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: Program.run(PyPI.python ?? "", arguments)) }
        }
    }
}
