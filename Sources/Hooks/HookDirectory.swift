// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// A directory of hooks. It is read again for each change.
package struct HookDirectory: Sendable {
    /// A file that is not run.
    package struct Refusal: Hashable, Sendable {
        package let path: String
        package let why: String
    }

    /// What a directory holds.
    package struct Content: Sendable {
        /// The files to run, in the order of their names' bytes.
        package var hooks: [String] = []
        package var refusals: [Refusal] = []
    }

    /// So many files are looked at. A directory with more holds something else than hooks.
    static let mostFiles = 1000

    /// Where it is.
    package let path: String
    private let user: UInt32

    /// - Parameters:
    ///   - path: an absolute path.
    ///   - user: as whom the hooks run. Nobody else but root may be able to write to them; for root, nor to a directory
    ///     above them.
    package init(_ path: String, of user: UInt32) {
        (self.path, self.user) = (path, user)
    }

    /// What it holds; nothing if it is not there.
    package func content() -> Content {
        var content = Content()
        let directory: DirectoryStream
        do throws(SystemError) {
            directory = try DirectoryStream(path)
        } catch {
            if error.code != ENOENT { content.refuse(path, SystemError("reading it", code: error.code).description) }
            return content
        }
        if let why = objection(to: directory.status) ?? objectionToParents(of: path) {
            content.refuse(path, why)
            return content
        }
        var names: [String] = []
        while let name = directory.next() {
            if Self.isHookName(name) { names.append(name) }
            guard names.count <= Self.mostFiles else {
                content.refuse(path, "it holds more than \(Self.mostFiles) files")
                return content
            }
        }
        names.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        for file in names.map({ "\(path)/\($0)" }) {
            if let why = objection(to: file) {
                content.refuse(file, why)
            } else {
                content.hooks.append(file)
            }
        }
        return content
    }

    /// The names that run-parts(8) takes, and those with dots in them. Left out are hidden files, editors' backups
    /// (`~`), and the copies that dpkg and rpm leave.
    static func isHookName(_ name: String) -> Bool {
        let isPlain = name.utf8.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        let leftovers = [
            ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-tmp", ".rpmsave", ".rpmnew", ".rpmorig", ".swp",
        ]
        return isPlain && !name.isEmpty && !name.hasPrefix(".") && !leftovers.contains(where: name.hasSuffix)
    }

    private func objection(to file: String) -> String? {
        var status = stat()
        guard stat(file, &status) == 0 else { return SystemError.last("looking at it").description }
        guard status.st_mode & S_IFMT == S_IFREG else { return "it is not a file" }
        if let why = objection(to: status) { return why }
        // A link may lead out of the directory.
        if let why = objectionToParents(of: file) { return why }
        return access(file, X_OK) == 0 ? nil : "it is not executable; chmod +x, or move it away"
    }

    private func objection(to status: stat) -> String? {
        if status.st_uid != 0, status.st_uid != user {
            return user == 0
                ? "it belongs to user \(status.st_uid); it must belong to root"
                : "it belongs to user \(status.st_uid); it must belong to root or user \(user)"
        }
        if status.st_mode & (S_IWGRP | S_IWOTH) != 0 { return "others can write to it; chmod go-w" }
        return nil
    }

    private func objectionToParents(of path: String) -> String? {
        guard user == 0, let obstacle = RootsPath.obstacle(to: path) else { return nil }
        return "\(obstacle.directory): \(obstacle.text)"
    }
}

extension HookDirectory.Content {
    fileprivate mutating func refuse(_ path: String, _ why: String) {
        refusals.append(.init(path: path, why: why))
    }
}
