// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneClient
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtonePushAPI
internal import DialtoneVarlink
internal import Glibc

struct Notify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what is wrong and how its notification stands, or test that notifications are shown.",
        discussion: """
            Talks to the session agent, as dialtone push does. session.toml(5) says what is shown, and when.

            With --test, the exit status is 1 unless the notification is shown.
            """)

    @Flag(help: "Show a notification, and say what shows it or why none is shown.")
    var test = false

    @Flag(help: "Write one JSON object.")
    var json = false

    @OptionGroup
    var color: ColorOption

    func run() async throws {
        guard test else {
            let reply = try await SessionAgent.client.call(NotificationsAPI.List.self, VarlinkEmpty())
            return json ? Output.write(json: reply) : Output.write(NotifyScreen.list(reply, Output.style))
        }
        // The bus may have to start the daemon, twice 25 s.
        let reply = try await SessionAgent.client.call(
            NotificationsAPI.Test.self, VarlinkEmpty(), timeout: .seconds(60))
        if json { Output.write(json: reply) } else { Output.write(NotifyScreen.test(reply, Output.style)) }
        if reply.outcome != .shown { throw ExitCode(EXIT_FAILURE) }
    }
}
