// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient

struct Close: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Close a connection and supervise it no longer.")

    @Argument(help: "The connection's name.", completion: .connections)
    var name: String

    @OptionGroup
    var owner: OwnerOption

    func run() async throws {
        try await DialtoneClient().close(name, owner: owner.number)
    }
}
