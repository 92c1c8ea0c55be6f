// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneClient
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtonePushAPI
internal import DialtoneVarlink
internal import Glibc

struct Push: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "See and manage the pushes that apps get through this machine.",
        discussion: """
            Talks to the session agent, dialtone-session, on $XDG_RUNTIME_DIR/dialtone/session.sock or the socket that \
            $DIALTONE_SESSION_SOCKET names. A registration is named by its number, or by its app's name if the \
            app has only one.
            """,
        subcommands: [
            PushStatus.self, PushList.self, PushHistory.self, PushTest.self, PushRemove.self, PushUse.self,
            PushMetrics.self,
        ],
        defaultSubcommand: PushStatus.self)
}

struct PushStatus: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the push server, when the last message came, and what waits.")

    @Flag(help: "Write one JSON object.")
    var json = false

    @OptionGroup
    var color: ColorOption

    func run() async throws {
        let status = try await SessionAgent.client.call(PushAPI.Status.self, VarlinkEmpty())
        if json { return Output.write(json: status) }
        Output.write(PushScreen.status(status, now: .now(), Output.style))
    }
}

struct PushList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the apps that registered, with what waits for them and why.")

    @Flag(help: "Write one JSON object a line for each registration.")
    var json = false

    @OptionGroup
    var color: ColorOption

    func run() async throws {
        let registrations = try await SessionAgent.client.call(PushAPI.List.self, VarlinkEmpty()).registrations
        if json {
            for registration in registrations { Output.write(json: registration) }
        } else {
            Output.write(PushScreen.list(registrations, now: .now(), Output.style))
        }
    }
}

struct PushHistory: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show which messages apps took, and why others were given up.",
        discussion: """
            A line for each message, the oldest first. The session agent keeps them over its restarts, for up to 30 \
            days. What still waits is in `dialtone push list`.
            """)

    @Argument(help: "A registration's number, or the app's name; by default all.")
    var registration: String?

    @Option(
        name: [.customShort("n", allowingJoined: true), .long], help: "The most lines, the newest ones, 1 to 8192.")
    var lines = PushAPI.History.usualCount

    @Flag(help: "Write one JSON object a line for each message.")
    var json = false

    @OptionGroup
    var color: ColorOption

    func validate() throws {
        let counts = PushAPI.History.counts
        guard counts.contains(lines) else {
            throw ValidationError(
                "--lines \(lines) is out of range: give a number from \(counts.lowerBound) to \(counts.upperBound)")
        }
    }

    func run() async throws {
        let messages = try await SessionAgent.client.call(
            PushAPI.History.self, .init(registration: registration, count: lines)
        ).messages
        if json {
            for message in messages { Output.write(json: message) }
        } else {
            Output.write(PushScreen.history(messages, now: .now(), Output.style))
        }
    }
}

struct PushTest: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Deliver a message to an app, to see that it is started and answers.",
        discussion: """
            The message is not encrypted, so an app that expects encryption discards it. The exit status is 1 unless \
            the app took it.
            """)

    @Argument(help: "A registration's number, or the app's name.")
    var registration: String

    func run() async throws {
        // Longer than an app has to start and to answer (`DistributorLimits.answer`, twice).
        let reply = try await SessionAgent.client.call(
            PushAPI.Test.self, .init(registration: registration), timeout: .seconds(120))
        Output.write(PushScreen.test(reply, Output.style))
        if reply.outcome != .taken { throw ExitCode(EXIT_FAILURE) }
    }
}

struct PushRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "End a registration, as the app could. The app is told.")

    @Argument(help: "A registration's number, or the app's name.")
    var registration: String

    func run() async throws {
        _ = try await SessionAgent.client.call(PushAPI.Remove.self, .init(registration: registration))
    }
}

struct PushMetrics: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics", abstract: "Write the metrics of push, for Prometheus.",
        discussion: """
            Writes OpenMetrics 1.0: whether and since when this machine is logged in at the push server, how many apps \
            and messages there are, and what became of the messages since the session agent's start. No label names \
            an app.
            """)

    @Flag(help: "Write Prometheus' text format 0.0.4 instead, for node_exporter's textfile collector.")
    var prometheus = false

    func run() async throws {
        let agent = SessionAgent.client
        let status = try await agent.call(PushAPI.Status.self, VarlinkEmpty())
        let registrations = try await agent.call(PushAPI.List.self, VarlinkEmpty()).registrations
        let text = PushMetricsText(status, registrations).text(prometheus ? .prometheus : .openMetrics)
        Output.write(bytes: Array(text.utf8))
    }
}
