// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DialtonePlatform
internal import Glibc

/// Whether this process has descriptors left for new work: beyond its limit every client is turned away, root too, and
/// nothing is dialled or written down.
///
/// The kernel gives out the lowest number that is free (open(2)). So with the next one at or above a mark, as many are
/// in use as the mark says, and nobody has to count.
@AgentQueue
struct DescriptorRoom {
    /// How many this process may have (RLIMIT_NOFILE).
    let limit: Int
    /// The number that the next descriptor would have.
    private let next: @AgentQueue () -> Int

    /// A limit and use of the test's.
    init(limit: Int, next: @escaping @AgentQueue () -> Int) {
        self.limit = limit
        self.next = next
    }

    /// The room of this process.
    init() {
        self.init(limit: DescriptorLimit.current) {
            // Of the standard input, which every process has; without a number all are taken.
            let number = fcntl(0, F_DUPFD_CLOEXEC, 0)
            if number >= 0 { close(number) }
            return number < 0 ? .max : Int(number)
        }
    }

    /// What is kept for the clients that come and for the dials of the connections that there are: a quarter. Root may
    /// take half of that.
    private func mark(forRoot: Bool) -> Int { limit - limit / (forRoot ? 8 : 4) }

    /// Why there are none for new work of a user; `nil` where there are.
    func shortage(forRoot: Bool) -> String? {
        guard next() >= mark(forRoot: forRoot) else { return nil }
        return """
            \(mark(forRoot: forRoot)) of \(limit) descriptors (RLIMIT_NOFILE) are in use, and the rest is kept for \
            what there is
            """
    }
}
