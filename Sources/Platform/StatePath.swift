// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Where the directory of state is if nobody names a place, and how it is made.
package enum StatePath {
    /// What the service manager names (`StateDirectory=`), else the system's place for root and the user's own (XDG
    /// Base Directory Specification) for others; `nil` where nothing says where that is.
    ///
    /// - Parameters:
    ///   - user: the effective user of the process.
    ///   - environment: looks up an environment variable.
    package static func standard(user: UInt32, environment: (String) -> String?) -> String? {
        // Of several the first; a service has one.
        if let named = environment("STATE_DIRECTORY")?.split(separator: ":").first { return String(named) }
        return user == 0 ? "/var/lib/dialtone" : ofUser("dialtone", environment: environment)
    }

    /// The place of a folder among the user's own state (XDG Base Directory Specification); `nil` where nothing says
    /// where that is.
    package static func ofUser(_ folder: String, environment: (String) -> String?) -> String? {
        // A relative one is to be ignored.
        if let state = environment("XDG_STATE_HOME"), state.hasPrefix("/") { return "\(state)/\(folder)" }
        return environment("HOME").flatMap { $0.hasPrefix("/") ? "\($0)/.local/state/\(folder)" : nil }
    }

    /// Makes a directory, and those above it that are missing, for its owner alone.
    package static func make(_ path: String) throws(SystemError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw .last("making \(path)")
        }
        try make(String(path[..<slash]))
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw .last("making \(path)") }
    }
}
