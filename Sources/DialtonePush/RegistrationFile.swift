// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// Where the app's registrations are kept: a file of the app's name that only its user can read, since it has the keys.
struct RegistrationFile: Hashable, Sendable {
    let directory: String
    let name: String

    /// The file of an app: in `$XDG_STATE_HOME/dialtone-push`, by default `~/.local/state/dialtone-push`.
    ///
    /// - Returns: `nil` where the environment names neither.
    init?(app: String, environment: [String: String]) {
        guard let directory = StatePath.ofUser("dialtone-push", environment: { environment[$0] }) else { return nil }
        (self.directory, name) = (directory, app)
    }

    var path: String { "\(directory)/\(name)" }

    /// What the file says; `nil` where there is none.
    func read() -> [UInt8]? { FileContent.bytes(of: path, limit: Registrations.mostBytes + 1) }

    /// Puts `bytes` in its place: after a crash, the file has them or what was there before.
    func write(_ bytes: [UInt8]) throws(SystemError) {
        try StatePath.make(directory)
        // The distributor is about to keep the other half: keys that are lost with the power would make its pushes
        // unreadable.
        try FileContent.replace(path, with: bytes)
    }
}
