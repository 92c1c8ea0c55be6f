// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc

/// The variables of this process (environ(7)); of two with one name, the first one, as getenv(3) has it.
package func processEnvironment() -> [String: String] {
    var variables: [String: String] = [:]
    var next = environ
    while let variable = next.pointee {
        // By bytes: for Swift, "=" and an accent that follows it are one character.
        let text = String(cString: variable).utf8
        if let sign = text.firstIndex(of: UInt8(ascii: "=")), let name = String(text[..<sign]), variables[name] == nil {
            variables[name] = String(text[text.index(after: sign)...])
        }
        next += 1
    }
    return variables
}
