// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// The limits on this process's memory: those of its control group and of the groups above it, and of setrlimit(2).
///
/// Asked, it is a `pread` of a few small files; what the kernel could take back is looked at only where a limit seems
/// near, since that makes the kernel add up what each processor counted.
@AgentQueue
final class MemoryLimits {
    private let groups: [MemoryGroup]
    private let process = MemoryFile("/proc/self/statm")
    /// What this process's own group took at the start.
    private let atStart: UInt64

    /// The limits of this process, which has not begun anything yet.
    init() {
        groups = MemoryGroup.all(
            names: FileContent.text(of: "/proc/self/cgroup") ?? "",
            mounts: FileContent.text(of: "/proc/self/mountinfo") ?? "")
        atStart = groups.first?.held ?? 0
    }

    /// How much more the process's own group takes than at the start, in bytes. In the groups above others may have
    /// grown.
    private var growth: UInt64 {
        let held = groups.first?.held ?? 0
        return held - min(held, atStart)
    }

    /// Where the memory is counted of the group that this process is in; `nil` where none is known.
    var ownGroup: String? { groups.first?.directory }

    /// The lowest of those at which the process is killed or gets no more, in bytes; `nil` where there is none.
    private var least: UInt64? {
        let uses = groups.flatMap { $0.uses(leaving: 1, needed: .min, mapped: 0) } + processUses
        return uses.filter { !$0.name.hasSuffix(MemoryGroup.slowing) }.map(\.limit).min()
    }

    /// What the lowest of these leaves beside the program, in bytes; `nil` where there is none. All of the program
    /// counts, as it is there once all of it ran, but no more than half of the limit: some of it never runs.
    var beside: UInt64? { least.map { $0 - min($0 / 2, ResidentMemory.programBytes) } }

    /// The limit that is nearest, as it is now; `nil` where there is none.
    ///
    /// - Parameters:
    ///   - parts: one part in so many of the reserve is left alone.
    ///   - needed: with this room left beside that, what could be taken back does not matter.
    func nearest(leaving parts: UInt64, needed: Int64) -> MemoryUse? {
        let mapped = mappedBytes
        var nearest = (groups.flatMap { $0.uses(leaving: parts, needed: needed, mapped: mapped) } + processUses)
            .min { $0.room(leaving: parts) < $1.room(leaving: parts) }
        if let room = nearest?.room(leaving: parts), room < needed { nearest?.growth = growth }
        return nearest
    }

    /// The figures of proc_pid_statm(5), in bytes: all, resident, of files, text, 0, data.
    private var statm: [UInt64] {
        let page = UInt64(sysconf(CInt(_SC_PAGESIZE)))
        return process?.text().split(separator: " ").map { (UInt64($0) ?? 0).multipliedReportingOverflow(by: page).0 }
            ?? []
    }

    /// The most that this process has had mapped of files: its program, as far as it has run. What the kernel took
    /// back of that is read again when it runs again.
    private var mappedBytes: UInt64 {
        let figures = statm
        if figures.count > 2 { mostMapped = max(mostMapped, figures[2]) }
        return mostMapped
    }

    private var mostMapped: UInt64 = 0

    /// What the process uses of the limits that hold for it alone.
    private var processUses: [MemoryUse] {
        let limits = [(RLIMIT_AS, "RLIMIT_AS", 0), (RLIMIT_DATA, "RLIMIT_DATA", 5)].compactMap {
            resource, name, field in
            var limit = rlimit()
            let isSet = getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 && limit.rlim_cur != .max
            return isSet ? (name, UInt64(limit.rlim_cur), field) : nil
        }
        if limits.isEmpty { return [] }
        let figures = statm
        return limits.compactMap { name, limit, field in
            figures.indices.contains(field) ? MemoryUse(name: name, limit: limit, used: figures[field]) : nil
        }
    }
}

/// The files in which one control group, of version 1 or 2, counts its memory
/// (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).
@AgentQueue
struct MemoryGroup {
    let directory: String
    /// What may not be exceeded, and above what the kernel slows the group down.
    private let limits: [(name: String, file: MemoryFile)]
    private let use: MemoryFile
    private let details: MemoryFile

    /// What counts as used and is the kernel's to take back: pages of files, and what it remembers of them.
    private nonisolated static let reclaimable = ["inactive_file", "active_file", "slab_reclaimable"]
    /// Of these, what a process would read again at once: its program, as far as it ran lately. A group that has no
    /// room for it spends its time on reading, minutes for one call.
    private nonisolated static let mapped = ["file_mapped", "mapped_file"]

    /// Above it the kernel only slows a group down.
    fileprivate nonisolated static let slowing = "memory.high"

    /// The group of a directory; `nil` where it counts nothing, as the topmost one of version 2.
    init?(_ directory: String) {
        self.directory = directory
        let names = ["memory.max", Self.slowing, "memory.limit_in_bytes"]
        limits = names.compactMap { name in MemoryFile("\(directory)/\(name)").map { (name, $0) } }
        guard !limits.isEmpty,
            let use = MemoryFile("\(directory)/memory.current") ?? MemoryFile("\(directory)/memory.usage_in_bytes"),
            let details = MemoryFile("\(directory)/memory.stat")
        else { return nil }
        (self.use, self.details) = (use, details)
    }

    /// The groups that a process is in, the innermost first.
    ///
    /// - Parameters:
    ///   - names: the lines of /proc/self/cgroup.
    ///   - mounts: those of /proc/self/mountinfo.
    static func all(names: String, mounts: String) -> [MemoryGroup] {
        names.split(separator: "\n").flatMap { name in
            // The list also names mounts that lie under another one, whose files cannot be opened.
            directories(name: name, mounts: mounts).lazy.map { $0.compactMap { MemoryGroup($0) } }
                .first { !$0.isEmpty } ?? []
        }
    }

    /// The directories of the group that a line of /proc/self/cgroup names and of those above it, the innermost first,
    /// by each mount that shows it. Where a mount shows no more than a part of the tree, as in a container, the groups
    /// above it are unknown.
    nonisolated static func directories(name: Substring, mounts: String) -> [[String]] {
        // "number:controllers:path"; of version 2 it is 0 and none.
        let parts = name.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return [] }
        let isUnified = parts[0] == "0" && parts[1].isEmpty
        guard isUnified || parts[1].split(separator: ",").contains("memory") else { return [] }
        return mounts.split(separator: "\n").compactMap { line in
            guard let mount = CgroupMount(line, controller: isUnified ? nil : "memory"),
                let directory = mount.directory(of: String(parts[2]))
            else { return nil }
            var (found, group) = ([String](), directory[...])
            while group.count >= mount.point.count {
                found.append(String(group))
                guard group.count > mount.point.count, let slash = group.lastIndex(of: "/") else { break }
                group = group[..<slash]
            }
            return found
        }
    }

    /// What is used of each limit that is set.
    ///
    /// - Parameter mapped: what this process has mapped of files, as of ``taken(of:_:mapped:)``.
    func uses(leaving parts: UInt64, needed: Int64, mapped: UInt64) -> [MemoryUse] {
        let set = limits.compactMap { name, file in file.number().map { (name, $0) } }
        guard !set.isEmpty, let used = use.number() else { return [] }
        let plain = set.map { MemoryUse(name: "\(directory)/\($0)", limit: $1, used: used &+ mapped) }
        if plain.allSatisfy({ $0.room(leaving: parts) >= needed }) { return plain }
        let taken = Self.taken(of: used, details.text(), mapped: mapped)
        return set.map { MemoryUse(name: "\(directory)/\($0)", limit: $1, used: taken) }
    }

    /// What of a group's use the kernel could not take back, or somebody would miss, by its memory.stat. Version 1
    /// writes apart what the groups below have in it ("total_…").
    ///
    /// - Parameter mapped: what this process has mapped of files. The kernel may count these pages against another
    ///   group, which read them first; when that gives them up, this one reads them again and has them.
    nonisolated static func taken(of used: UInt64, _ details: String, mapped: UInt64) -> UInt64 {
        let (cached, counted) = cachedAndMapped(in: details)
        let rest = used - min(used, cached - min(cached, counted))
        return rest &+ (mapped - min(mapped, counted))
    }

    /// What the group takes without the pages of files: of the processes' own and of the kernel's for them, in bytes.
    var held: UInt64 {
        let used = use.number() ?? 0
        return used - min(used, Self.cachedAndMapped(in: details.text()).cached)
    }

    private nonisolated static func cachedAndMapped(in details: String) -> (cached: UInt64, mapped: UInt64) {
        let lines = details.split(separator: "\n").map { $0.split(separator: " ") }.filter { $0.count == 2 }
        let figures = Dictionary(lines.map { ($0[0], UInt64($0[1]) ?? 0) }) { first, _ in first }
        let prefix = figures["total_inactive_file"] == nil ? "" : "total_"
        func sum(_ names: [String]) -> UInt64 { names.reduce(0) { $0 &+ (figures["\(prefix)\($1)"] ?? 0) } }
        return (sum(reclaimable), sum(mapped))
    }
}

/// A mount of control groups, by its line of proc_pid_mountinfo(5).
struct CgroupMount {
    let root: String
    let point: String

    /// - Parameter controller: the one of version 1 that is looked for; `nil` for version 2.
    init?(_ line: Substring, controller: String?) {
        let fields = line.split(separator: " ")
        guard let dash = fields.firstIndex(of: "-"), dash > 4, fields.count > dash + 3 else { return nil }
        if let controller {
            guard fields[dash + 1] == "cgroup", fields[dash + 3].split(separator: ",").contains(Substring(controller))
            else { return nil }
        } else if fields[dash + 1] != "cgroup2" {
            return nil
        }
        (root, point) = (String(fields[3]), String(fields[4]))
    }

    /// Where the mount shows a group; `nil` where it does not.
    func directory(of group: String) -> String? {
        guard group.hasPrefix("/"), !group.hasPrefix("/..") else { return nil }
        if root == "/" { return group == "/" ? point : point + group }
        if group == root { return point }
        return group.hasPrefix("\(root)/") ? point + group.dropFirst(root.count) : nil
    }
}

/// A small file of the kernel's that is read again and again.
@AgentQueue
final class MemoryFile {
    private let file: OwnedDescriptor

    /// `nil` for one that is not there, or not to be read.
    init?(_ path: String) {
        let number = open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return nil }
        file = OwnedDescriptor(number)
    }

    /// What it says now, as far as 8 KiB: a group's details have three.
    func text() -> String {
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = pread(file.number, &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }

    /// The number that it says now; `nil` for "max", and for what version 1 writes in its place: the most pages that a
    /// counter holds.
    func number() -> UInt64? {
        let value = UInt64(text().prefix { $0 != "\n" })
        return value.flatMap { $0 < 1 << 60 ? $0 : nil }
    }
}
