// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient

struct Redial: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Drop a connection's socket, if there is one, and dial at once.",
        discussion: "With --after, not before the server may be dialled again, whatever the network does meanwhile.")

    @Argument(help: "The connection's name.", completion: .connections)
    var name: String

    @OptionGroup
    var owner: OwnerOption

    @Option(help: .init("How long the server asked to be left alone (Retry-After), as in 120s.", valueName: "duration"))
    var after: DurationArgument?

    func validate() throws { try after?.check("--after", atMost: PolicyOptions.longest) }

    func run() async throws {
        try await DialtoneClient().redial(name, owner: owner.number, after: after?.duration)
    }
}
