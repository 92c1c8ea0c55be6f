// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DialtonePlatform
internal import Glibc

/// The sandbox that a process is in.
enum Sandbox: Hashable, Sendable {
    /// None that is known.
    case none
    /// Flatpak: the app's id, and the patterns of bus names that it may own beside those that begin with that id.
    case flatpak(String, owns: [String])
    /// Snap: the name of the snap.
    case snap(String)

    /// What became of the look at a process.
    struct Unseen: Error, Hashable {
        let text: String
    }

    /// How ``AppIdentity/sandbox`` calls it.
    var name: String? {
        switch self {
        case .none: nil
        case .flatpak(let id, _): "flatpak:\(id)"
        case .snap(let name): "snap:\(name)"
        }
    }

    /// Whether an app in it may own this bus name. Flatpak's proxy sees to it already (xdg-dbus-proxy(1)); of a snap
    /// AppArmor does, by the slots of its `snap.yaml`, and nothing here says which names these are.
    func mayOwn(_ service: String) -> Bool {
        switch self {
        case .none, .snap: true
        case .flatpak(let id, let owns): Self.matches(service, "\(id).*") || owns.contains { Self.matches(service, $0) }
        }
    }

    /// Whether a name is one that a pattern means: the name itself, or with `.*` also those that go on with a dot.
    private static func matches(_ service: String, _ pattern: String) -> Bool {
        guard pattern.hasSuffix(".*") else { return service == pattern }
        return service == pattern.dropLast(2) || service.hasPrefix(pattern.dropLast(1))
    }

    // MARK: Looking

    /// A file of /proc, and Flatpak's, which lists an app's permissions: some kilobytes.
    private static let longestFile = 64 * 1024

    /// Looks which sandbox a process is in. Its number must have been its own a moment ago: where it has ended
    /// meanwhile, that is told.
    ///
    /// What cannot be looked at is not taken for a process without a sandbox.
    static func of(_ process: UInt32) throws(Unseen) -> Sandbox {
        guard let process = Int32(exactly: process), process > 0 else {
            throw Unseen(text: "the bus does not know its process")
        }
        // Held while it is looked at: as long as it lives, /proc shows no other one under its number.
        let number = platform_pidfd_open(process)
        guard number >= 0 else { throw Unseen(text: "\(SystemError.last("watching process \(process)"))") }
        let handle = OwnedDescriptor(number)
        let sandbox = try flatpak(process) ?? snap(process) ?? .none
        var poll = pollfd(fd: handle.number, events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, 0) == 0 else { throw Unseen(text: "process \(process) has ended") }
        return sandbox
    }

    /// Flatpak shows each of its processes, and the proxy by which they are on the bus, `/.flatpak-info`
    /// (flatpak-metadata(5)), which no process in there can change.
    private static func flatpak(_ process: Int32) throws(Unseen) -> Sandbox? {
        let root = open("/proc/\(process)/root", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard root >= 0 else { throw Unseen(text: "\(SystemError.last("looking at the root of process \(process)"))") }
        defer { close(root) }
        let number = openat(root, ".flatpak-info", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)
        if number < 0, errno == ENOENT { return nil }
        guard number >= 0 else {
            throw Unseen(text: "\(SystemError.last("reading .flatpak-info of process \(process)"))")
        }
        let file = OwnedDescriptor(number)
        var status = stat()
        guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let sandbox = flatpak(
                String(decoding: FileContent.bytes(of: file, limit: longestFile), as: UTF8.self))
        else { throw Unseen(text: ".flatpak-info of process \(process) names no app") }
        return sandbox
    }

    /// What Flatpak's file says: `name` of `[Application]`, and the names of `[Session Bus Policy]` with `own`.
    static func flatpak(_ text: String) -> Sandbox? {
        var group = ""
        var id = ""
        var owns: [String] = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("[") {
                group = String(line)
                continue
            }
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { continue }
            if group == "[Application]", parts[0] == "name" { id = String(parts[1]) }
            if group == "[Session Bus Policy]", parts[1] == "own" { owns.append(String(parts[0])) }
        }
        return id.isEmpty ? nil : .flatpak(id, owns: owns)
    }

    /// A snap's processes have AppArmor's label `snap.NAME.APP`, and without AppArmor a control group of that name.
    private static func snap(_ process: Int32) -> Sandbox? {
        for file in ["attr/apparmor/current", "attr/current", "cgroup"] {
            guard let text = FileContent.text(of: "/proc/\(process)/\(file)", limit: longestFile) else { continue }
            if let name = file == "cgroup" ? snap(group: text) : snap(label: text) { return .snap(name) }
        }
        return nil
    }

    /// The snap of a label, `snap.NAME.APP (enforce)`.
    static func snap(label: String) -> String? {
        let parts = label.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count >= 3 && parts[0] == "snap" && !parts[1].isEmpty ? String(parts[1]) : nil
    }

    /// The snap whose group is the last of a path in proc(5)'s cgroup.
    static func snap(group text: String) -> String? {
        for line in text.split(separator: "\n") {
            let path = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).last ?? ""
            for part in path.split(separator: "/") {
                if let name = snap(label: String(part)) { return name }
            }
        }
        return nil
    }
}
