// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneClient

struct Park: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Give a connection back that was taken, with a session on it.",
        discussion: """
            For programs that have the connection's socket from the agent and do not speak to it themselves. They \
            close the socket afterwards.
            """)

    @Argument(help: "The connection's name.", completion: .connections)
    var name: String

    @Option(help: "The number of the socket that is given back; by default $DIALTONE_EPOCH.")
    var epoch: Int?

    @OptionGroup
    var opening: OpeningOption

    @OptionGroup
    var owner: OwnerOption

    /// Whose connection `dialtone take` took.
    private static var ownerOfTaken: Int? { Output.environment["DIALTONE_OWNER"].flatMap { Int($0) } }

    func run() async throws {
        guard let epoch = epoch ?? Output.environment["DIALTONE_EPOCH"].flatMap({ Int($0) }) else {
            throw ValidationError("which socket is given back? Give --epoch, or set DIALTONE_EPOCH")
        }
        try await DialtoneClient().park(
            name, owner: owner.number ?? Self.ownerOfTaken, epoch: epoch, opening: opening.wire())
    }
}
