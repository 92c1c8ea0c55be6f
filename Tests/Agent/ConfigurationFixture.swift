// SPDX-License-Identifier: Apache-2.0

import DialtoneProcesses
import DialtoneTestSupport
import Foundation

@testable import DialtoneAgent
@testable import DialtoneConfiguration

/// A configuration directory of a test's own.
final class ConfigurationFixture {
    private let place = TemporaryDirectory()
    var directory: String { place.path }

    init(_ files: [String: String] = [:]) throws {
        mkdir("\(directory)/connections.d", 0o755)
        for (name, text) in files { try write(text, to: name) }
    }

    func write(_ text: String, to name: String = "dialtone.toml", mode: mode_t = 0o644) throws {
        try place.write(text, to: name)
        chmod("\(directory)/\(name)", mode)
    }

    /// Loads the files as the daemon does when its unit names the directory. The one user there is
    /// besides the numbers is "kiosk", 1001.
    func load() throws(ConfigurationError) -> LoadedConfiguration {
        let files = ConfigurationFiles.standard(user: 0) { $0 == "CONFIGURATION_DIRECTORY" ? directory : nil }
        return try load(files)
    }

    func load(_ files: ConfigurationFiles) throws(ConfigurationError) -> LoadedConfiguration {
        try Configuration.load(
            files,
            ConfigurationChecks(
                userNumber: { $0 == "kiosk" ? 1001 : nil },
                identity: { (1000..<2000).contains($0) || $0 == 0 ? Self.identity($0) : nil }, daemonUser: 0))
    }

    /// What the machine's own service of a user would say of them.
    func errors(inServiceOf user: UInt32) -> [String] {
        var checks = ConfigurationChecks(
            userNumber: { $0 == "kiosk" ? 1001 : nil }, identity: { Self.identity($0) },
            daemonUser: user)
        checks.isMachineService = true
        let files = ConfigurationFiles(main: "\(directory)/dialtone.toml")
        return errors { () throws(ConfigurationError) in _ = try Configuration.load(files, checks) }
    }

    /// What belongs to a user.
    static func identity(_ user: UInt32) -> ProgramIdentity {
        ProgramIdentity(user: user, group: user, groups: [user], name: "user\(user)", home: "/home", shell: "/bin/sh")
    }

    /// The errors of a load, a line for each, without the directory.
    func errors() -> [String] { errors { () throws(ConfigurationError) in _ = try load() } }

    private func errors(_ load: () throws(ConfigurationError) -> Void) -> [String] {
        do throws(ConfigurationError) {
            try load()
            return []
        } catch {
            return error.description.replacingOccurrences(of: "\(directory)/", with: "").components(separatedBy: "\n")
        }
    }
}
