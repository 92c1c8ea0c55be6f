// SPDX-License-Identifier: Apache-2.0

import DialtoneResolver
import Foundation

/// The host's configuration of names, in files of its own: with the machine's, a seed would not mean the same on
/// another machine.
struct NameConfiguration: Sendable {
    let files: NameFiles
    private let directory: String

    /// A configuration that names `servers`, of which nothing is ever asked.
    init(servers: [Subject]) throws {
        directory = NSTemporaryDirectory() + "soak.\(UUID().uuidString)"
        files = NameFiles(
            resolvConf: directory + "/resolv.conf", hosts: directory + "/hosts", nsswitch: directory + "/nsswitch")
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let lines = servers.map { "nameserver \($0.address)" + ($0.interface.map { "%\($0)" } ?? "") + "\n" }
        try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: files.resolvConf))
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: directory)
    }
}
