// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// The Python that has what the tests need from PyPI.
package enum PyPI {
    /// Its path, made at the first use (`scripts/python-varlink`); `nil`, and the reason on standard error, when it
    /// cannot be made.
    package static let python: String? = {
        let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }
        let made = Program.run("\(root)/scripts/python-varlink", [])
        if made.status != 0 { writeLine("scripts/python-varlink: \(made.error)", to: STDERR_FILENO) }
        let program = made.output.split(separator: "\n").first.map(String.init) ?? ""
        // It is a link to the interpreter of whoever made it, which others may not be allowed to run.
        return made.status == 0 && access(program, X_OK) == 0 ? program : nil
    }()
}
