// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Foundation

/// A control group with a limit on its memory, of whichever version this kernel counts memory by.
final class LimitedGroup: Sendable {
    private enum Version: CaseIterable {
        case first, second

        var mount: (type: String, data: String) { self == .first ? ("cgroup", "memory") : ("cgroup2", "") }
        /// The limit's file, and that of swap: nothing is to be left to the disk.
        var limits: (memory: String, swap: String) {
            self == .first
                ? ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes") : ("memory.max", "memory.swap.max")
        }
    }

    /// Where groups that count memory are, and in which way.
    private static let tree: (directory: String, version: Version)? = {
        for version in Version.allCases {
            var template = Array("/tmp/dialtone-memory-XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else { return nil }
            let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
            if mount("none", directory, version.mount.type, 0, version.mount.data) == 0 {
                if version == .second { try? LimitedGroup.write("+memory", to: "\(directory)/cgroup.subtree_control") }
                let probe = "\(directory)/dialtone-test-\(getpid())-probe"
                defer { rmdir(probe) }
                if mkdir(probe, 0o755) == 0, access("\(probe)/\(version.limits.memory)", W_OK) == 0 {
                    return (directory, version)
                }
                umount(directory)
            }
            rmdir(directory)
        }
        return nil
    }()

    /// Whether groups can be made and limited here.
    static var isPossible: Bool { tree != nil }

    private let directory: String
    private let version: Version

    /// A group that may have so many bytes.
    init(bytes: Int) throws {
        guard let (tree, version) = Self.tree else { throw SystemError("making a group with a limit", code: ENOTSUP) }
        self.version = version
        directory = "\(tree)/dialtone-test-\(getpid())-\(UUID().uuidString.prefix(8))"
        let directory = directory
        try retryingInterrupts("making \(directory)") { mkdir(directory, 0o755) }
        try Self.write("\(bytes)", to: "\(directory)/\(version.limits.memory)")
        // Not there where the kernel does not count swap.
        try? Self.write(version == .first ? "\(bytes)" : "0", to: "\(directory)/\(version.limits.swap)")
    }

    deinit { rmdir(directory) }

    /// A command that enters the group and becomes the command that follows.
    var launcher: [String] {
        ["/bin/sh", "-c", "echo $$ >'\(directory)/cgroup.procs' && exec \"$@\"", "sh"]
    }

    /// How many bytes its processes use, the kernel's for them included.
    func use() throws -> Int {
        let file = version == .first ? "memory.usage_in_bytes" : "memory.current"
        let text = try String(contentsOfFile: "\(directory)/\(file)", encoding: .utf8)
        return Int(text.dropLast()) ?? -1
    }

    private static func write(_ text: String, to path: String) throws {
        let file = OwnedDescriptor(try retryingInterrupts("opening \(path)") { open(path, O_WRONLY | O_CLOEXEC) })
        let number = file.number
        _ = try retryingInterrupts("writing to \(path)") { Foundation.write(number, text, text.utf8.count) }
    }
}
