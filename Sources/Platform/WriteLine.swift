// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Writes a line to a standard stream. One that is closed is no reason to stop.
package func writeLine(_ line: String, to descriptor: CInt) {
    let bytes = Array("\(line)\n".utf8)
    _ = write(descriptor, bytes, bytes.count)
}
