// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient

struct Redial: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Drop a connection's socket, if there is one, and dial at once.",
        discussion: "With --after, not before the server may be dialled again, whatever the network does meanwhile.")

    @Argument(help: "The connection's name.")
    var name: String

    @OptionGroup
    var owner: OwnerOption

    @Option(help: .init("How long the server asked to be left alone (Retry-After).", valueName: "seconds"))
    var after: Int?

    func validate() throws {
        if let after, !(0...PolicyOptions.longest).contains(after) {
            throw ValidationError("--after \(after) is out of range: give seconds from 0 to \(PolicyOptions.longest)")
        }
    }

    func run() async throws {
        try await DialtoneClient().redial(name, owner: owner.number, after: after.map { .seconds($0) })
    }
}
