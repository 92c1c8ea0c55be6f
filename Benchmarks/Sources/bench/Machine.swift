// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials
internal import Glibc

/// The machine that the figures are of.
enum Machine {
    /// The running processes of the last minute, five and fifteen, on average.
    static var load: String { text("/proc/loadavg").split(separator: " ").prefix(3).joined(separator: " ") }

    /// The kernel's release.
    static var kernel: String { text("/proc/sys/kernel/osrelease").split(separator: "\n").joined() }

    /// Processors that this program may run on.
    static var processors: Int { sysconf(CInt(_SC_NPROCESSORS_ONLN)) }

    private static func text(_ path: String) -> String {
        (try? Data(contentsOf: URL(filePath: path))).map { String(decoding: $0, as: UTF8.self) } ?? "unknown"
    }
}
