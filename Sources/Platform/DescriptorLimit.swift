// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// How many descriptors this process may have (`RLIMIT_NOFILE`, getrlimit(2)).
package enum DescriptorLimit {
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// As many as it may have now.
    package static var current: Int {
        var limit = rlimit()
        getrlimit(resource, &limit)
        return limit.rlim_cur > rlim_t(CInt.max) ? Int(CInt.max) : Int(limit.rlim_cur)
    }

    /// Takes as many as it may take. The soft limit of 1,024 is there for programs that use select(2)
    /// (https://0pointer.net/blog/file-descriptor-limits.html).
    package static func raise() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        // A refusal leaves the old limit.
        _ = setrlimit(resource, &limit)
    }
}
