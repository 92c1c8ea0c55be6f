// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// Control groups of version 2 that can be frozen, below one of the benchmark's own.
final class ControlGroups: Sendable {
    private let mount: String
    private let names: [String]

    /// Makes groups of these names; `nil` where this machine gives none.
    init?(_ names: [String]) {
        var template = Array("/tmp/dialtone-bench-groups-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return nil }
        mount = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.names = names
        // The Lab's /sys shows none. The agent finds the mount as it finds any other.
        let isMounted = Glibc.mount("none", mount, "cgroup2", 0, nil) == 0
        for name in names where isMounted { mkdir(directory(name), 0o755) }
        if names.allSatisfy({ access("\(directory($0))/cgroup.freeze", W_OK) == 0 }) { return }
        remove()
        return nil
    }

    deinit { remove() }

    /// A group's directory. Others may run this benchmark at the same time.
    func directory(_ name: String) -> String { "\(mount)/dialtone-bench-\(getpid())-\(name)" }

    /// Freezes a group, and returns when the kernel says that nothing in it runs.
    func freeze(_ name: String) throws {
        try write("1", to: "\(directory(name))/cgroup.freeze")
        for _ in 0..<5000 {
            if try text(of: "\(directory(name))/cgroup.events").contains("frozen 1") { return }
            usleep(1000)
        }
        throw SystemError("freezing \(name)", code: ETIMEDOUT)
    }

    private func remove() {
        for name in names {
            // What was killed while it was frozen is gone in a moment.
            for _ in 0..<1000 where rmdir(directory(name)) != 0 && errno == EBUSY { usleep(1000) }
        }
        umount(mount)
        rmdir(mount)
    }

    private func write(_ text: String, to path: String) throws {
        let file = try opened("opening \(path)", open(path, O_WRONLY | O_CLOEXEC))
        try retryingInterrupts("writing \(path)") { Glibc.write(file.number, text, text.utf8.count) }
    }

    private func text(of path: String) throws -> String {
        let file = try opened("opening \(path)", open(path, O_RDONLY | O_CLOEXEC))
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = try retryingInterrupts("reading \(path)") { read(file.number, &bytes, bytes.count) }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
