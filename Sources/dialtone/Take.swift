// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePlatform
internal import DialtoneVarlink

struct Take: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a command with a connection as its standard input and output.",
        discussion: """
            The command finds $DIALTONE_NAME, $DIALTONE_OWNER and $DIALTONE_EPOCH in its environment. When it ends \
            with 0, it has left a session on the connection, between two messages, and the agent keeps that alive \
            from then on. When it ends otherwise, or by a signal, nothing is known of the session.

            Exit status: the command's; 128 and the signal's number when a signal ended it; 127 when there is no such \
            command, 126 when it cannot be run; else as of the other commands.
            """)

    @Argument(help: "The connection's name.", completion: .connections)
    var name: String

    @Flag(
        help: """
            Give the command the connection as descriptor 3, and $LISTEN_FDS, $LISTEN_PID and $LISTEN_FDNAMES, as \
            systemd does.
            """)
    var fd = false

    @Flag(help: "Wait until the connection can be taken.")
    var wait = false

    @Flag(help: "Wait until there is something to read.")
    var onData = false

    @OptionGroup
    var left: LeftOptions

    @OptionGroup
    var owner: OwnerOption

    @Argument(parsing: .postTerminator, help: "What to run, with its arguments.")
    var command: [String] = []

    func validate() throws {
        try ForegroundCommand.require(command)
    }

    func run() async throws {
        let command = try ForegroundCommand(command)
        let (steps, answers) = (try left.openingWire(), try left.answersWire())
        let client = DialtoneClient()
        let flow = try await client.take(name, owner: owner.number, until: onData ? .data : wait ? .flow : nil)
        let (epoch, isOver, owner) = (flow.epoch, flow.isOver, flow.connection.owner)
        let child = Child(
            command: command, connection: flow.connection, epoch: epoch, streams: fd ? .passed : .standard)
        let status = try await child.run(with: flow)
        if status != 0 { throw ExitCode(status) }
        // Nothing is left on one that has ended. But so the agent knows that the command had it.
        if isOver {
            try? await client.park(name, owner: owner, epoch: epoch)
        } else {
            try await park(epoch, of: owner, leaving: steps, answers, client)
        }
    }

    private func park(
        _ epoch: Int, of owner: Int?, leaving steps: [ConnectionsAPI.OpeningStep]?,
        _ answers: [ConnectionsAPI.AnsweredMessage]?, _ client: DialtoneClient
    ) async throws {
        do throws(DialtoneError) {
            try await client.park(name, owner: owner, epoch: epoch, opening: steps, answers: answers)
        } catch {
            guard error.code == .staleEpoch else { throw error }
            // The command did what it was to do; the agent has another flow by now, and sees to the rest.
            Output.fail("\(name): the connection was lost meanwhile.")
        }
    }
}
