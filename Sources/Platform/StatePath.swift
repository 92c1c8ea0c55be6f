// SPDX-License-Identifier: Apache-2.0

/// Where the directory of state is if nobody names a place.
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
        if user == 0 { return "/var/lib/dialtone" }
        // A relative one is to be ignored.
        if let home = environment("XDG_STATE_HOME"), home.hasPrefix("/") { return "\(home)/dialtone" }
        return environment("HOME").flatMap { $0.hasPrefix("/") ? "\($0)/.local/state/dialtone" : nil }
    }
}
