// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// What the kernel says of this process, when it is asked.
package enum ProcessFigures {
    /// The bytes of its memory that are in RAM: the second number of `/proc/self/statm` (proc_pid_statm(5)), in pages;
    /// `nil` where /proc cannot be read.
    package static var residentBytes: Int? {
        let pages = FileContent.text(of: "/proc/self/statm")?.split(separator: " ").dropFirst().first
        return pages.flatMap { Int($0) }?.multipliedReportingOverflow(by: sysconf(CInt(_SC_PAGESIZE))).partialValue
    }

    /// How many descriptors it has open; `nil` where /proc cannot be read. Since Linux 6.2 the size of `/proc/self/fd`
    /// says so (proc_pid_fd(5)); before, its entries are counted.
    package static var descriptors: Int? {
        var status = stat()
        guard stat("/proc/self/fd", &status) == 0 else { return nil }
        if status.st_size > 0 { return Int(status.st_size) }
        guard let directory = try? DirectoryStream("/proc/self/fd") else { return nil }
        var count = 0
        while directory.next() != nil { count += 1 }
        // The one that reads the directory is open only for that.
        return count - 1
    }

    /// How often one of its threads, past ones included, gave up the processor to wait for something (`ru_nvcsw`,
    /// getrusage(2)).
    package static var wakeUps: Int {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage.ru_nvcsw
    }
}
