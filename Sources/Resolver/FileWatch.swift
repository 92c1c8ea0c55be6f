// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DialtonePlatform
internal import Glibc

/// Tells when what some paths lead to may have changed, through every symbolic link on the way; inotify(7), no polling.
///
/// One instance for all paths: a user has 128 of them, for all programs together.
///
/// Watched are directories, not only the file: configuration is replaced by renaming a new file over the old one, and a
/// link such as `/etc/resolv.conf -> ../run/systemd/resolve/stub-resolv.conf` is moved to another manager's file, which
/// may not exist before that manager starts. For a component that does not exist yet, its parent is watched.
@AgentQueue
final class FileWatch {
    /// One name in one directory, whose coming, going and writing counts.
    private struct Point: Hashable {
        var directory: String
        var name: String
    }

    /// Links followed before a path is taken for a loop; the kernel's own limit (`MAXSYMLINKS`, path_resolution(7)).
    private static let linkLimit = 40

    /// A writer that truncates and writes is heard when it closes; a rename or a link, when it is made.
    private static let events = UInt32(
        IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF)

    private let paths: [String]
    private let descriptor: OwnedDescriptor
    private let handler: @AgentQueue (Set<String>) -> Void
    private var registration: Poller.Registration?
    /// The names that count, each with the paths that it is on the way of.
    private var points: [Point: Set<String>] = [:]
    private var directories: [CInt: String] = [:]

    /// Watches `paths`, which are absolute, and calls `handler` on the agent's queue with those that may have changed.
    ///
    /// - Throws: the kernel's refusal: `EMFILE` and `ENOSPC` at the user's limits in `/proc/sys/fs/inotify`.
    init(_ paths: [String], _ handler: @escaping @AgentQueue (Set<String>) -> Void) throws(SystemError) {
        self.paths = paths
        self.handler = handler
        let number = inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC))
        guard number >= 0 else { throw .last("watching \(paths.joined(separator: ", "))") }
        descriptor = OwnedDescriptor(number)
        registration = try Poller.shared.register(number, .readable) { [weak self] _ in self?.readEvents() }
        try follow()
    }

    isolated deinit { cancel() }

    /// Ends the watch. No call of the handler follows.
    func cancel() {
        registration?.cancel()
        registration = nil
    }

    /// Sets the watches to the present ways to the files. The way is looked at again once they stand: a link that was
    /// moved in between was moved unheard. A directory that went in between, or that may not be read, has no watch.
    private func follow() throws(SystemError) {
        repeat {
            points = ways()
            var present: [CInt: String] = [:]
            for directory in Set(points.keys.map(\.directory)) {
                let watch = inotify_add_watch(descriptor.number, directory, Self.events | UInt32(IN_ONLYDIR))
                if watch < 0, errno == ENOSPC { throw .last("watching \(directory)") }
                if watch >= 0 { present[watch] = directory }
            }
            for watch in directories.keys where present[watch] == nil { inotify_rm_watch(descriptor.number, watch) }
            directories = present
        } while points != ways()
    }

    private func readEvents() {
        var changed: Set<String> = []
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: MemoryLayout<inotify_event>.alignment) { buffer in
            while case let count = read(descriptor.number, buffer.baseAddress, buffer.count), count > 0 {
                var offset = 0
                while offset < count {
                    let event = buffer.load(fromByteOffset: offset, as: inotify_event.self)
                    let start = offset + MemoryLayout<inotify_event>.size
                    let name = buffer[start..<start + Int(event.len)].prefix { $0 != 0 }
                    changed.formUnion(concerned(by: event, String(decoding: name, as: UTF8.self)))
                    offset = start + Int(event.len)
                }
            }
        }
        guard !changed.isEmpty else { return }
        // A limit that is reached only now leaves the watches that stand; the present content is still told.
        try? follow()
        handler(changed)
    }

    private func concerned(by event: inotify_event, _ name: String) -> Set<String> {
        guard event.len > 0, let directory = directories[event.wd] else {
            // The queue ran over, or a directory itself went: anything may have happened.
            return event.mask & UInt32(IN_IGNORED) == 0 ? Set(paths) : []
        }
        return points[Point(directory: directory, name: name)] ?? []
    }

    /// The names on the way to each of the paths.
    private func ways() -> [Point: Set<String>] {
        var points: [Point: Set<String>] = [:]
        for path in paths {
            for point in Self.way(to: path) { points[point, default: []].insert(path) }
        }
        return points
    }

    /// Every name that is looked up between `path` and the file it leads to.
    private static func way(to path: String) -> Set<Point> {
        var points: Set<Point> = []
        var path = path
        for _ in 0..<linkLimit {
            var (directory, name) = split(path)
            while access(directory, F_OK) != 0, directory != "/" { (directory, name) = split(directory) }
            points.insert(Point(directory: directory, name: name))
            guard let target = link(at: path) else { break }
            path = target.hasPrefix("/") ? target : "\(directory)/\(target)"
        }
        return points
    }

    private static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let directory = String(path[..<slash])
        return (directory.isEmpty ? "/" : directory, String(path[path.index(after: slash)...]))
    }

    private static func link(at path: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = readlink(path, start, buffer.count)
            guard count >= 0 else { return nil }
            return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}
