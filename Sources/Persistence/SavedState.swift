// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
internal import Glibc
package import Logging

/// What the daemon keeps, in its state directory; where there is none, in memory for as long as it runs.
@AgentQueue
package final class SavedState {
    private let directory: StateDirectory?

    /// Keeps state in a directory, by default where the environment says; says once what cannot be kept.
    package init(_ logger: Logger, in path: String? = standardPath) {
        guard let path else {
            directory = nil
            logger.notice("nothing is kept for the next run: neither STATE_DIRECTORY nor HOME is set")
            return
        }
        do throws(SystemError) {
            directory = try StateDirectory(path, logger)
        } catch {
            directory = nil
            let reason = error.code == EWOULDBLOCK ? "another daemon keeps its state there" : "\(error)"
            logger.notice(
                "the history and what is learned of keepalives are not kept for the next run",
                metadata: ["directory": "\(path)", "reason": "\(reason)"])
        }
    }

    /// Keeps everything in memory.
    package init() { directory = nil }

    /// Where the environment says.
    package nonisolated static var standardPath: String? {
        StatePath.standard(user: geteuid()) { getenv($0).map { String(cString: $0) } }
    }

    /// The content of a file; `nil` where there is none.
    package func read(_ name: String, atMost limit: Int) throws(SystemError) -> [UInt8]? {
        switch directory {
        case .some(let directory): try directory.read(name, atMost: limit)
        case .none: nil
        }
    }

    /// Puts `bytes` in the place of a file's content.
    func replace(_ name: String, with bytes: [UInt8]) throws(SystemError) {
        switch directory {
        case .some(let directory): try directory.replace(name, with: bytes)
        case .none: break
        }
    }

    /// Whether what is kept outlives the process.
    var isOnDisk: Bool {
        switch directory {
        case .some: true
        case .none: false
        }
    }

    /// The files whose names begin so, the one changed last at the end.
    package func names(beginning prefix: String) -> [String] {
        switch directory {
        case .some(let directory): directory.names(beginning: prefix)
        case .none: []
        }
    }

    /// Removes a file.
    package func remove(_ name: String) {
        switch directory {
        case .some(let directory): directory.remove(name)
        case .none: break
        }
    }

    /// Puts a file aside that cannot be used, and says so.
    func putAside(_ name: String, because reason: String) throws(SystemError) {
        switch directory {
        case .some(let directory): try directory.putAside(name, because: reason)
        case .none: break
        }
    }

    /// Renames a file over another one.
    func rename(_ old: String, to new: String) throws(SystemError) {
        switch directory {
        case .some(let directory): try directory.rename(old, to: new)
        case .none: break
        }
    }

    /// A file to be appended to and read; in memory, an empty one each time.
    package func open(_ name: String) throws(SystemError) -> OwnedDescriptor {
        switch directory {
        case .some(let directory): return try directory.open(name, O_RDWR | O_APPEND)
        case .none:
            return try OwnedDescriptor.fileInMemory(name)
        }
    }
}
