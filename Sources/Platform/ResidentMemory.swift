// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc

/// What of the process stays in memory.
package enum ResidentMemory {
    /// Lets go of the program's text and of the heap's free pages, once the start is over.
    ///
    /// Starting up touches code that never runs again (relocation, the option parser, the configuration), and the
    /// kernel maps the pages around each as well: two thirds of the resident set of an idle daemon are such pages. They
    /// are clean pages of files, so giving them back (`MADV_DONTNEED`, madvise(2)) loses nothing; what is needed again
    /// is mapped again from the page cache, at a microsecond a page. Only executable mappings: the others hold
    /// relocated data.
    package static func release() {
        for mapping in program {
            // A refusal leaves the pages where they are.
            madvise(UnsafeMutableRawPointer(mutating: mapping.baseAddress), mapping.count, MADV_DONTNEED)
        }
        trim()
    }

    /// What the process takes of files once all of its program ran: the text of it and of its libraries, in bytes.
    package static var programBytes: UInt64 { program.reduce(0) { $0 + UInt64($1.count) } }

    /// Where files are mapped to be run.
    private static var program: [UnsafeRawBufferPointer] {
        (FileContent.text(of: "/proc/self/maps") ?? "").split(separator: "\n").compactMap { line in
            // "start-end perms offset device inode path", as in proc_pid_maps(5).
            let fields = line.split(separator: " ")
            guard fields.count >= 6, fields[1] == "r-xp", fields[5].hasPrefix("/") else { return nil }
            let bounds = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard bounds.count == 2, let start = UnsafeRawPointer(bitPattern: bounds[0]) else { return nil }
            return UnsafeRawBufferPointer(start: start, count: Int(bounds[1] - bounds[0]))
        }
    }

    /// Lets go of the heap's free pages, which the C library keeps between what is in use. A few milliseconds for a
    /// hundred megabytes.
    package static func trim() {
        malloc_trim(0)
    }
}
