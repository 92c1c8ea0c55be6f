// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient

struct Redial: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Drop a connection's socket, if there is one, and dial at once.")

    @Argument(help: "The connection's name.")
    var name: String

    func run() async throws {
        _ = try await DialtoneClient().call(ConnectionsAPI.Redial.self, .init(name: name))
    }
}
