// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation
import Testing

extension Trait where Self == ConditionTrait {
    /// Skips a test outside of the Lab's sandbox, and says how to get into it.
    static var lab: Self {
        .enabled(if: LabSandbox.isInside, Comment(rawValue: LabSandbox.obstacle ?? "inside of the sandbox"))
    }
}

/// A user besides the one that runs the tests, as which programs of the Lab can be started.
enum AnotherUser {
    /// Becomes that user and then the command that follows. The change of user takes the signal away that ends the
    /// Lab's processes with their machine: it is asked for anew.
    static let command = [
        "setpriv", "--reuid", "\(number)", "--regid", "\(number)", "--clear-groups", "--pdeathsig", "KILL",
    ]

    static let number: UInt32 = 65_534

    /// Why there is none here; `nil` if there is one.
    static let obstacle: Comment? = {
        guard geteuid() == 0 else { return "only root can be another user" }
        let map = (try? String(contentsOfFile: "/proc/self/uid_map", encoding: .utf8)) ?? ""
        // One line a range: first inside, first outside, how many (user_namespaces(7)).
        let ranges = map.split(separator: "\n").map { $0.split(separator: " ").compactMap { Int($0) } }
        let isMapped = ranges.contains { $0.count == 3 && $0[0] <= 65_534 && 65_534 < $0[0] + $0[2] }
        return isMapped ? nil : "this user namespace has no user but root"
    }()
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where there is only one user.
    static var anotherUser: Self {
        .enabled(if: AnotherUser.obstacle == nil, AnotherUser.obstacle ?? "there is another user")
    }
}
