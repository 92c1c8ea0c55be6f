// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The program that this process runs.
package enum OwnProgram {
    /// The path of its file (`/proc/self/exe`, proc_pid_exe(5)). Where that was replaced while it runs, it is that of
    /// the new one.
    package static var path: String {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let text = String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
        let mark = " (deleted)"
        return text.hasSuffix(mark) ? String(text.dropLast(mark.count)) : text
    }

    /// The directory of its file.
    package static var directory: String {
        let path = path
        return path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    }
}
