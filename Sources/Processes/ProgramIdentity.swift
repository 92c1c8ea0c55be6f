// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Whose a program is that is launched: the user with everything that belongs to it, looked up beforehand.
package struct ProgramIdentity: Hashable, Sendable {
    /// The user's number.
    package let user: UInt32
    /// The number of the user's own group.
    package let group: UInt32
    /// The numbers of all groups that the user is in, the own one among them.
    package let groups: [UInt32]
    /// The user's name.
    package let name: String
    /// The home directory.
    package let home: String
    /// The shell.
    package let shell: String

    /// An identity of these parts.
    package init(user: UInt32, group: UInt32, groups: [UInt32], name: String, home: String, shell: String) {
        self.user = user
        self.group = group
        self.groups = groups
        self.name = name
        self.home = home
        self.shell = shell
    }

    /// More groups than any system has users in; the kernel's own limit is 65,536 (`NGROUPS_MAX`).
    private static let mostGroups = 4096

    /// The user as the system's list of users has it, getpwuid_r(3) and getgrouplist(3); `nil` where it has none.
    ///
    /// It may ask the network, and block for as long as that takes: never on the agent's queue.
    package static func lookUp(_ user: UInt32) -> ProgramIdentity? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard let start = buffer.baseAddress, getpwuid_r(user, &entry, start, buffer.count, &found) == 0,
                found != nil
            else { return nil }
            var count = CInt(mostGroups)
            let groups = [gid_t](unsafeUninitializedCapacity: mostGroups) { list, filled in
                let result = getgrouplist(entry.pw_name, entry.pw_gid, list.baseAddress, &count)
                filled = result < 0 ? 0 : Int(count)
            }
            guard !groups.isEmpty else { return nil }
            return ProgramIdentity(
                user: user, group: entry.pw_gid, groups: groups, name: String(cString: entry.pw_name),
                home: String(cString: entry.pw_dir), shell: String(cString: entry.pw_shell))
        }
    }

    /// What a program of this user finds in its environment, and nothing of the agent's own.
    var environment: [String: String] {
        var variables = [
            "USER": name, "LOGNAME": name, "HOME": home, "SHELL": shell.isEmpty ? "/bin/sh" : shell,
            "PATH": user == 0
                ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" : "/usr/local/bin:/usr/bin:/bin",
        ]
        // Where the session is: a softphone without it finds neither sound nor screen.
        var status = stat()
        let runtime = "/run/user/\(user)"
        if lstat(runtime, &status) == 0, status.st_uid == user { variables["XDG_RUNTIME_DIR"] = runtime }
        if user != 0, user == geteuid() {
            for name in Self.ofSession {
                if let value = getenv(name) { variables[name] = String(cString: value) }
            }
        }
        return variables
    }

    /// What the agent of one user's session passes on of its own environment: where the session is, and its language.
    private static let ofSession = [
        "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "LANG", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR",
    ]
}
