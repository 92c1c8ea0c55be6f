// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSeccomp
internal import DialtonePlatform
internal import Glibc

/// What `dialtone-tls` may still ask of the kernel once it serves: to read, write and close what it was given, and to
/// wait. It opens no file, makes no socket, starts no program, signals nobody.
enum Sandbox {
    /// By name, as the kernel calls them; which of them the C library uses differs from version to version.
    private static let calls = [
        // Bytes and descriptors.
        "read", "write", "pread64", "pwrite64", "close", "recvfrom", "recvmsg", "sendto", "sendmsg", "shutdown",
        "accept4", "getsockopt", "setsockopt", "fstat", "newfstatat", "writev",
        // Waiting.
        "epoll_wait", "epoll_pwait", "epoll_ctl", "poll", "ppoll", "futex", "clock_nanosleep", "nanosleep",
        "restart_syscall", "sched_yield",
        // Memory, clocks and chance, beside what is allowed in part.
        "munmap", "mremap", "madvise", "brk", "clock_gettime", "gettimeofday", "getrandom",
        // Threads, which begin and end.
        "set_robust_list", "rseq", "gettid", "getpid", "sched_getaffinity", "rt_sigprocmask", "rt_sigaction",
        "rt_sigreturn", "sigaltstack", "exit", "exit_group",
    ]

    /// Refuses every other call of all threads, for the life of the process, with `EPERM`.
    ///
    /// - Throws: the kernel's refusal of the filter, or what libseccomp says.
    static func enter() throws(SystemError) {
        guard let filter = cseccomp_refusing_all() else {
            throw SystemError("making a system call filter", code: ENOMEM)
        }
        defer { seccomp_release(filter) }
        for name in calls {
            let call = seccomp_syscall_resolve_name(name)
            // One that this kind of machine does not have.
            guard call != __NR_SCMP_ERROR, call >= 0 else { continue }
            try check(cseccomp_allow(filter, call))
        }
        try check(cseccomp_allow_threads_and_memory(filter))
        try check(cseccomp_allow_in_part(filter, getpid()))
        // All threads that there are, not this one alone.
        try check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1))
        try check(seccomp_load(filter))
    }

    private static func check(_ result: CInt) throws(SystemError) {
        if result < 0 { throw SystemError("restricting system calls", code: -result) }
    }
}
