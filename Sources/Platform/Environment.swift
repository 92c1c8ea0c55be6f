// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc

/// The variables of this process (environ(7)); of two with one name, the first one, as getenv(3) has it.
package func processEnvironment() -> [String: String] {
    var variables: [String: String] = [:]
    var next = environ
    while let variable = next.pointee {
        let text = String(cString: variable)
        if let sign = text.firstIndex(of: "="), variables[String(text[..<sign])] == nil {
            variables[String(text[..<sign])] = String(text[text.index(after: sign)...])
        }
        next += 1
    }
    return variables
}
