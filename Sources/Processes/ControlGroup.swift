// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneProcesses
internal import DialtonePlatform
internal import Glibc

/// A control group of version 2 (Documentation/admin-guide/cgroup-v2.rst), as far as freezing goes.
struct ControlGroup: Hashable, Sendable {
    /// Its directory.
    private(set) var directory: String

    /// The group that `/proc/PID/cgroup` names, under the mount of this machine that shows it.
    init?(named name: String) {
        // A mount may be hidden by another one over it.
        guard let mounts = FileContent.text(of: "/proc/self/mountinfo"),
            let found = Self.directories(of: name, mounts: mounts).first(where: {
                access("\($0)/cgroup.procs", F_OK) == 0
            })
        else { return nil }
        directory = found
    }

    /// The group of a directory, or of a path below the mount: `/sys/fs/cgroup/kiosk` or `kiosk`.
    init?(at path: String) {
        guard !path.hasPrefix("/") else {
            directory = path
            return
        }
        guard let group = ControlGroup(named: "/\(path)") else { return nil }
        self = group
    }

    /// Where a group's directory may be, by the lines of proc(5)'s mountinfo.
    static func directories(of name: String, mounts: String) -> [String] {
        // A group outside of this process's namespace has no directory here.
        guard name.hasPrefix("/"), !name.hasPrefix("/../"), name != "/.." else { return [] }
        return mounts.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            guard let dash = fields.firstIndex(of: "-"), fields.count > dash + 1, fields[dash + 1] == "cgroup2",
                dash > 4
            else { return nil }
            let (root, point) = (unescaped(fields[3]), unescaped(fields[4]))
            if root == "/" { return point + (name == "/" ? "" : name) }
            // A mount that shows a part of the tree.
            if name == root { return point }
            return name.hasPrefix("\(root)/") ? point + name.dropFirst(root.count) : nil
        }
    }

    /// Mountinfo writes blanks and backslashes as three octal digits.
    private static func unescaped(_ field: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(field.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"), rest.count >= 3,
                let value = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
            {
                bytes.append(value)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether its processes are frozen, by its own setting or by that of a group above; `nil` where it has none.
    var isFrozen: Bool? {
        text(of: "cgroup.events")?.split(separator: "\n").first { $0.hasPrefix("frozen ") }.map { $0 == "frozen 1" }
    }

    /// Whether it was frozen by itself.
    var freezesItself: Bool? { text(of: "cgroup.freeze").map { $0.hasPrefix("1") } }

    /// The user whose group it is; `nil` where there is none.
    var owner: UInt32? {
        var status = stat()
        return stat(directory, &status) == 0 ? status.st_uid : nil
    }

    /// Has the kernel thaw it. Its processes run a moment later, when ``isFrozen`` says so.
    func thaw() throws(SystemError) {
        let file = try open("cgroup.freeze", O_WRONLY)
        if write(file.number, "0", 1) != 1 { throw .last("writing to \(directory)/cgroup.freeze") }
    }

    /// Opens a file of the group. The path may lead through directories of other users, who could put a link or a file
    /// of their own there: no symbolic link is followed, and nothing is opened outside of the kernel's control groups.
    func open(_ file: String, _ flags: CInt) throws(SystemError) -> OwnedDescriptor {
        let number = activation_open_group_file(directory, file, flags)
        if number == -2 {
            throw SystemError("opening \(directory), which is no control group of version 2", code: EINVAL)
        }
        if number < 0 { throw .last("opening \(directory)/\(file)") }
        return OwnedDescriptor(number)
    }

    private func text(of file: String) -> String? {
        guard let file = try? open(file, O_RDONLY) else { return nil }
        return String(decoding: FileContent.bytes(of: file), as: UTF8.self)
    }
}
