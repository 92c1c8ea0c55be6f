// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtonePresentation
internal import Glibc

/// Whose connection is meant, where root names one that several users have.
struct OwnerOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "For root: whose connection is meant, by name or number; by default root's own, else the only one.",
            valueName: "user"))
    var owner: UserArgument?

    /// The user's number, for the daemon.
    var number: Int? { owner?.number }
}

/// A user on the command line.
struct UserArgument: ExpressibleByArgument {
    let number: Int

    init?(argument: String) {
        if let number = UInt32(argument) {
            self.number = Int(number)
        } else if let entry = getpwnam(argument) {
            number = Int(entry.pointee.pw_uid)
        } else {
            return nil
        }
    }

    /// The name of a user, or the number where there is none.
    static func name(of number: Int) -> String {
        guard let user = UInt32(exactly: number), let entry = getpwuid(user), let name = entry.pointee.pw_name else {
            return "\(number)"
        }
        return String(cString: name)
    }
}

extension Output {
    /// Who reads what this program writes.
    static let reader = Reader(user: Int(geteuid()), userName: UserArgument.name)
}
