// SPDX-License-Identifier: Apache-2.0

/// Where the daemon's socket is.
public enum SocketPath {
    /// The socket of the machine's daemon.
    public static let system = "/run/dialtone/dialtone.sock"
    /// The environment variable that names another one, for clients.
    public static let variable = "DIALTONE_SOCKET"

    /// Where a daemon of user `uid` listens when it was told nothing else; `nil` for a user without a runtime
    /// directory (`XDG_RUNTIME_DIR`).
    public static func ofDaemon(uid: UInt32, environment: [String: String]) -> String? {
        uid == 0 ? system : ofSession(environment)
    }

    /// Where a client of user `uid` looks, in this order: where `DIALTONE_SOCKET` says, and nowhere else; else, for
    /// root, the machine's daemon; else the user's own daemon, then the machine's.
    public static func ofClient(uid: UInt32, environment: [String: String]) -> [String] {
        if let path = environment[variable], !path.isEmpty { return [path] }
        if uid == 0 { return [system] }
        return [ofSession(environment), system].compactMap { $0 }
    }

    private static func ofSession(_ environment: [String: String]) -> String? {
        guard let directory = environment["XDG_RUNTIME_DIR"], !directory.isEmpty else { return nil }
        return directory + "/dialtone/dialtone.sock"
    }
}
