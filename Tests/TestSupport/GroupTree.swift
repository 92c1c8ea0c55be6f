// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Foundation

/// Control groups of version 2, below one of a test's own.
package final class GroupTree: Sendable {
    private static let mount: String? = {
        if let point = shownMount() { return point }
        // The Lab has a /sys without it.
        var template = Array("/tmp/dialtone-groups-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return nil }
        let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard Foundation.mount("none", directory, "cgroup2", 0, nil) == 0 else {
            rmdir(directory)
            return nil
        }
        return directory
    }()

    /// Where the whole tree is mounted and not hidden by another mount.
    private static func shownMount() -> String? {
        text(of: "/proc/self/mountinfo").split(separator: "\n").lazy.map { $0.split(separator: " ") }
            .filter { fields in
                guard let dash = fields.firstIndex(of: "-"), fields.count > dash + 1, dash > 4 else { return false }
                return fields[dash + 1] == "cgroup2" && fields[3] == "/"
            }
            .map { String($0[4]) }.first { access("\($0)/cgroup.procs", F_OK) == 0 }
    }

    /// Whether groups can be made and frozen here.
    package static let isPossible: Bool = {
        guard let mount else { return false }
        let directory = "\(mount)/dialtone-test-\(getpid())-probe"
        defer { rmdir(directory) }
        return mkdir(directory, 0o755) == 0 && access("\(directory)/cgroup.freeze", W_OK) == 0
    }()

    private let root: String

    /// A tree with nothing in it.
    package init() throws {
        let mount = Self.mount ?? "/nowhere"
        root = "\(mount)/dialtone-test-\(getpid())-\(UUID().uuidString.prefix(8))"
        try retryingInterrupts("making \(root)") { mkdir(root, 0o755) }
    }

    deinit {
        // Whoever is still in them goes back to where the test is; a frozen process could not be killed.
        let all = (FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? [])
            .filter { $0.hasSuffix("cgroup.procs") }.map { String($0.dropLast("/cgroup.procs".count)) }
        for group in ([""] + all.map { "/\($0)" }).sorted(by: { $0.count > $1.count }) where group != "/" {
            try? Self.write("0", to: "\(root)\(group)/cgroup.freeze")
            for process in Self.text(of: "\(root)\(group)/cgroup.procs").split(separator: "\n") {
                try? Self.write(String(process), to: "\(Self.mount ?? "")/cgroup.procs")
            }
            rmdir("\(root)\(group)")
        }
    }

    /// Makes a group, and gives its directory.
    package func make(_ name: String) throws -> String {
        let directory = "\(root)/\(name)"
        try retryingInterrupts("making \(directory)") { mkdir(directory, 0o755) }
        return directory
    }

    /// Puts a process in a group.
    package func put(_ process: Int32, in group: String) throws {
        try Self.write("\(process)", to: "\(group)/cgroup.procs")
    }

    /// Freezes a group, and returns when its processes stand still.
    package func freeze(_ group: String) async throws {
        try Self.write("1", to: "\(group)/cgroup.freeze")
        try await eventually("it is frozen") { Self.text(of: "\(group)/cgroup.events").contains("frozen 1") }
    }

    /// A file of the kernel's, which says nothing of its length; empty where there is none.
    private static func text(of path: String) -> String {
        let number = open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return "" }
        defer { close(number) }
        var (bytes, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
        while case let count = read(number, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func write(_ text: String, to path: String) throws {
        let file = OwnedDescriptor(try retryingInterrupts("opening \(path)") { open(path, O_WRONLY | O_CLOEXEC) })
        let number = file.number
        _ = try retryingInterrupts("writing to \(path)") { Foundation.write(number, text, text.utf8.count) }
    }
}
