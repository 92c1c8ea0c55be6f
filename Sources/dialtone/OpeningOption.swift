// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtonePlatform
internal import DialtoneVarlink

/// What the agent says on each new socket to log in for a client.
struct OpeningOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What the agent says on each new socket to log in: a file in JSON, with an array of steps as OpeningStep "
                + "of org.dialtone.Connections has them.", valueName: "file"))
    var opening: String?

    /// For the daemon; `nil` when no file was given. Read here and not by the daemon, which has other rights.
    func wire() throws -> [ConnectionsAPI.OpeningStep]? {
        guard let opening else { return nil }
        guard let bytes = FileContent.bytes(of: opening) else {
            throw ValidationError("--opening: \(opening) cannot be read")
        }
        guard let steps = [ConnectionsAPI.OpeningStep](json: bytes) else {
            // What the decoder says may hold a piece of the file, and that a password.
            throw ValidationError("--opening: \(opening) is not an array of steps in JSON: [{\"send\": …, …}, …]")
        }
        return steps
    }
}
