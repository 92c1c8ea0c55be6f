// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// The users that are no people: the ranges of numbers that `/etc/subuid` gives to users for their containers
/// (subuid(5)). The owner of a range can become each user in it (newuidmap(1)), 65,536 on a stock Debian, so they count
/// as one.
struct SubordinateUsers: Sendable {
    /// Where subordinate numbers begin (`SUB_UID_MIN` of login.defs(5)). Below, a number is that of an account, which a
    /// range may hold as well: LXD's guides have root get user 1000.
    private static let lowest: UInt32 = 100_000

    private var ranges: [(users: Range<UInt32>, of: String)] = []

    /// None.
    init() {}

    /// Those of a file's text: lines of "user:first:count". Lines of another form are left out, as shadow(3) does.
    init(_ text: String) {
        ranges = text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            guard fields.count == 3, let first = UInt32(fields[1]), let count = UInt32(fields[2]) else { return nil }
            let (end, isTooMuch) = first.addingReportingOverflow(count)
            let users = max(first, Self.lowest)..<max(isTooMuch ? .max : end, first, Self.lowest)
            return users.isEmpty ? nil : (users, String(fields[0]))
        }
    }

    /// Those of this machine, as its file says now. It blocks on the file system.
    static func ofMachine() -> SubordinateUsers { SubordinateUsers(FileContent.text(of: "/etc/subuid") ?? "") }

    /// Whose subordinate a user is, as the file names him; `nil` for a user who is nobody's.
    func owner(of user: UInt32) -> String? { ranges.first { $0.users.contains(user) }?.of }

    /// The user whose share `user` takes part in: all of a range are one, whatever number each has.
    func account(of user: UInt32) -> UInt32 { ranges.first { $0.users.contains(user) }?.users.lowerBound ?? user }
}
