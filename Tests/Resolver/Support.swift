// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport

@testable import DialtoneResolver

/// A configuration of a test's own: a resolv.conf with this text, and no other file until it is written.
struct Configuration {
    private let directory = TemporaryDirectory()
    var files: NameFiles { NameFiles(in: directory) }

    init(_ text: String) { write(text) }

    func write(_ text: String, to file: String = "resolv.conf") {
        try? directory.write(text, to: file, atomically: true)
    }
    func writeHosts(_ text: String) { write(text, to: "hosts") }
    func writeNsswitch(_ text: String) { write(text, to: "nsswitch.conf") }
}

extension NameFiles {
    /// Those of a directory.
    init(in directory: TemporaryDirectory) {
        self.init(
            resolvConf: "\(directory.path)/resolv.conf", hosts: "\(directory.path)/hosts",
            nsswitch: "\(directory.path)/nsswitch.conf")
    }
}

typealias Answer = Result<Resolution, ResolutionError>

extension Answer {
    var addresses: [IPAddress]? { try? get().addresses }
    var source: Resolution.Source? { try? get().source }

    var error: ResolutionError? {
        if case .failure(let error) = self { error } else { nil }
    }
}

extension Resolver {
    @AgentQueue
    func resolve(_ name: String, _ families: [IPAddress.Family] = [.v6, .v4]) async -> Answer {
        await withCheckedContinuation { continuation in
            _ = resolve(name, families) { continuation.resume(returning: $0) }
        }
    }
}

let v4 = IPAddress(v4: 0xC633_6407)
let v6 = IPAddress(v6: 0x2001_0db8 << 96 | 7)

/// Runs `body` with a resolver that asks `server`, and knows no other file than those of its own configuration.
@AgentQueue
func withResolver(
    asking server: NameServerStub, at address: String = "127.0.0.1", _ options: String = "",
    _ body: @AgentQueue (Resolver, Configuration) async throws -> Void
) async throws {
    let configuration = Configuration("nameserver \(address)\n\(options)\n")
    try await body(Resolver(files: configuration.files, port: server.port), configuration)
    withExtendedLifetime(configuration) { server.stop() }
}
