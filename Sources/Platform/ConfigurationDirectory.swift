// SPDX-License-Identifier: Apache-2.0

/// Where files of the configuration are if nobody names a place.
package enum ConfigurationDirectory {
    /// Those of the machine.
    package static let machine = "/etc/dialtone"

    /// The machine's for root; for a user `$XDG_CONFIG_HOME/dialtone`, by default `~/.config/dialtone`.
    ///
    /// - Parameters:
    ///   - user: the effective user of the process.
    ///   - environment: looks up an environment variable.
    /// - Returns: `nil` for a user of whom the environment names no directory.
    package static func standard(user: UInt32, environment: (String) -> String?) -> String? {
        if user == 0 { return machine }
        // A relative path is to be ignored (XDG Base Directory Specification).
        if let base = environment("XDG_CONFIG_HOME"), base.hasPrefix("/") { return "\(base)/dialtone" }
        return environment("HOME").map { "\($0)/.config/dialtone" }
    }
}
