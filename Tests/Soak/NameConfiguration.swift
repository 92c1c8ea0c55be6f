// SPDX-License-Identifier: Apache-2.0

import DialtoneResolver
import DialtoneTestSupport

/// The host's configuration of names, in files of its own: with the machine's, a seed would not mean the same on
/// another machine.
struct NameConfiguration: Sendable {
    let files: NameFiles
    private let directory = TemporaryDirectory()

    /// A configuration that names `servers`, of which nothing is ever asked.
    init(servers: [Subject]) throws {
        files = NameFiles(
            resolvConf: "\(directory.path)/resolv.conf", hosts: "/nonexistent", nsswitch: "/nonexistent")
        let lines = servers.map { "nameserver \($0.address)" + ($0.interface.map { "%\($0)" } ?? "") + "\n" }
        try directory.write(lines.joined(), to: "resolv.conf")
    }
}
