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
    var left: LeftOptions

    @OptionGroup
    var owner: OwnerOption

    /// Whose connection `dialtone take` took.
    private static var ownerOfTaken: Int? { Output.environment["DIALTONE_OWNER"].flatMap { Int($0) } }

    /// The number of the socket that is given back.
    private var parked: Int? { epoch ?? Output.environment["DIALTONE_EPOCH"].flatMap { Int($0) } }

    func validate() throws {
        guard parked == nil else { return }
        throw ValidationError(
            "which socket is given back? Give --epoch its number, as \"dialtone status \(name)\" shows it; a command "
                + "under \"dialtone take\" has it in DIALTONE_EPOCH")
    }

    func run() async throws {
        guard let parked else { return }
        try await DialtoneClient().park(
            name, owner: owner.number ?? Self.ownerOfTaken, epoch: parked, opening: left.openingWire(),
            answers: left.answersWire())
    }
}
