// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// What /proc/PID/stat says of a process (proc_pid_stat(5)), as far as it is needed.
struct ProcessStat: Hashable {
    let isStopped: Bool
    /// The process that it is a child of.
    let parent: Int32

    /// - Returns: `nil` where there is no such process to be seen.
    init?(of process: Int32) {
        guard let text = FileContent.text(of: "/proc/\(process)/stat") else { return nil }
        self.init(text)
    }

    init?(_ text: String) {
        // The state follows the name, which may hold anything, and what makes one character with the next.
        let bytes = text.utf8
        guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = bytes[end...].dropFirst().split(separator: UInt8(ascii: " "), maxSplits: 2)
        guard fields.count > 1, let parent = Int32(Substring(fields[1])) else { return nil }
        isStopped = fields[0].elementsEqual("T".utf8)
        self.parent = parent
    }
}

/// Which process descends from which, as far as /proc shows them.
struct ProcessTree {
    private let children: [Int32: [Int32]]

    /// - Parameter parents: of each process the one that began it.
    init(parents: [Int32: Int32]) {
        children = Dictionary(grouping: parents.keys) { parents[$0] ?? 0 }
    }

    /// As it is now.
    static var now: ProcessTree {
        var parents: [Int32: Int32] = [:]
        guard let directory = try? DirectoryStream("/proc") else { return ProcessTree(parents: [:]) }
        while let name = directory.next() {
            guard let number = Int32(name) else { continue }
            parents[number] = ProcessStat(of: number)?.parent
        }
        return ProcessTree(parents: parents)
    }

    /// A process, and all that descend from it.
    func descendants(of process: Int32) -> [Int32] {
        var found = [process]
        var next = 0
        while next < found.count {
            // A number that was used again while /proc was read may stand under itself.
            found += (children[found[next]] ?? []).filter { !found.contains($0) }
            next += 1
        }
        return found
    }
}
