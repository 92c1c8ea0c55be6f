// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc

/// What the agent says for a client that sleeps.
struct LeftOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The messages with which the agent logs in on each new socket: a JSON file with an array of OpeningStep "
                + "(org.dialtone.Connections).", valueName: "file"))
    var opening: String?

    @Option(
        help: ArgumentHelp(
            "The answers that the agent gives the server while the connection is parked: a JSON file with an array of "
                + "AnsweredMessage (org.dialtone.Connections).", valueName: "file"))
    var answers: String?

    /// The opening for the daemon; `nil` when no file was given.
    func openingWire() throws -> [ConnectionsAPI.OpeningStep]? {
        try Self.read(opening, "--opening", "steps in JSON: [{\"send\": …, …}, …]") {
            [ConnectionsAPI.OpeningStep](json: $0)
        }
    }

    /// The answers for the daemon; `nil` when no file was given.
    func answersWire() throws -> [ConnectionsAPI.AnsweredMessage]? {
        try Self.read(answers, "--answers", "messages in JSON: [{\"protocol\": …, …}, …]") {
            [ConnectionsAPI.AnsweredMessage](json: $0)
        }
    }

    /// Read here and not by the daemon, which has other rights.
    private static func read<Value>(
        _ file: String?, _ option: String, _ what: String, _ decode: ([UInt8]) -> Value?
    ) throws -> Value? {
        guard let file else { return nil }
        guard let bytes = FileContent.bytes(of: file) else {
            Output.fail("\(SystemError.last("\(option): reading \(file)"))")
            throw ExitCode(EX_NOINPUT)
        }
        // What the decoder says may hold a piece of the file, and that a password.
        guard let value = decode(bytes) else { throw ValidationError("\(option): \(file) is not an array of \(what)") }
        return value
    }
}
