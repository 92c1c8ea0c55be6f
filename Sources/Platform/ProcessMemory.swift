// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform

/// Who may see this process's memory.
package enum ProcessMemory {
    /// From now on nobody but root: the kernel writes no core dump of it, and lets no other process of the same user
    /// trace it or read it through /proc (`PR_SET_DUMPABLE`, prctl(2)). What it reads of itself there, it still can.
    ///
    /// To be called before keys and passwords are read. A program that it starts is as any other again.
    package static func forbidDumps() {
        // Refused for no value that the kernel knows.
        _ = platform_forbid_dumps()
    }
}
