// SPDX-License-Identifier: Apache-2.0

/// Where the session agent's socket is.
package enum SessionSocket {
    /// The environment variable that names another one.
    package static let variable = "DIALTONE_SESSION_SOCKET"

    /// Where the session agent listens and its clients look; `nil` for a user without a runtime directory
    /// (`XDG_RUNTIME_DIR`).
    package static func path(_ environment: (String) -> String?) -> String? {
        if let path = environment(variable), !path.isEmpty { return path }
        guard let directory = environment("XDG_RUNTIME_DIR"), !directory.isEmpty else { return nil }
        return "\(directory)/dialtone/session.sock"
    }
}
