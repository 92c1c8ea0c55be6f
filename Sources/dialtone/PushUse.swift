// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneClient
internal import DialtonePlatform
internal import DialtonePushAPI
internal import DialtoneVarlink
internal import Glibc

struct PushUse: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "use", abstract: "Have pushes come through another server.",
        discussion: """
            SERVER is xmpp:user@example.com, wss://push.services.mozilla.com/ or https://ntfy.sh. The command writes \
            it to session.toml, see session.toml(5), unless that file has lines that are not from this command. It \
            reads the password of an XMPP account from the standard input and keeps it in a separate file, which only \
            you can read. Registered apps get a new endpoint.
            """)

    @Argument(help: "The server.")
    var server: String

    @Option(help: "XMPP: the address of the push service; by default the account's domain.")
    var service: String?

    @Option(help: "XMPP: where the account's server is, in place of what DNS says.")
    var host: String?

    @Option(help: "A file of certificates that are trusted in place of the system's authorities.", completion: .file())
    var ca: String?

    @Flag(help: "Read an access token of ntfy from the standard input.")
    var token = false

    /// The first line of a file that this command wrote and may write again.
    private static let mark = "# Written by `dialtone push use`, which writes it anew."
    /// The keys that this command writes and replaces.
    private enum Key: String, CaseIterable {
        case server, service, host, ca
        case passwordFile = "password_file"

        var start: String { "\(rawValue) = \"" }
        func line(_ value: String) -> String { "\(start)\(value)\"" }
    }

    func validate() throws {
        for value in [server, service, host, ca].compactMap(\.self) where value.contains(where: \.isForbidden) {
            throw ValidationError("\"\(value.printable)\" has a quote, a backslash or a control character")
        }
    }

    func run() async throws {
        ProcessMemory.forbidDumps()
        guard
            let directory = ConfigurationDirectory.standard(user: geteuid(), environment: { Output.environment[$0] })
        else { throw ValidationError("there is neither $XDG_CONFIG_HOME nor $HOME") }
        let file = "\(directory)/session.toml"
        let earlier = FileContent.text(of: file)
        if let earlier, let foreign = Self.foreignLine(of: earlier) {
            Output.fail(
                """
                \(file) was not changed: this command did not write its line \(foreign.number), \
                "\(foreign.text)", and would delete it. Write \(Key.server.line(server)) into its [push] yourself
                """)
            throw ExitCode(EXIT_FAILURE)
        }
        try makeDirectory(directory)
        var lines = [Self.mark, "[push]", Key.server.line(server)]
        for (key, value) in [(Key.service, service), (.host, host), (.ca, ca)] {
            if let value { lines.append(key.line(value)) }
        }
        let secret = "\(directory)/push-password"
        let earlierSecret = FileContent.text(of: secret)
        if server.hasPrefix("xmpp:") || token {
            try FileContent.replace(secret, with: Array(try readSecret().utf8))
            lines.append(Key.passwordFile.line(secret))
        }
        try FileContent.replace(file, with: Array((lines.joined(separator: "\n") + "\n").utf8))
        let agent = SessionAgent.client
        do throws(DialtoneError) {
            _ = try await agent.call(PushAPI.Reload.self, VarlinkEmpty())
        } catch {
            switch error {
            case .refused:
                try restore(secret, to: earlierSecret)
                try restore(file, to: earlier)
                throw error
            case .notRunning:
                // It reads the file when it is started.
                Output.fail("\(file) is written. \(SessionAgent.words(for: error) ?? error.description)")
            default: throw error
            }
        }
    }

    /// The first line of a file that this command did not write.
    private static func foreignLine(of text: String) -> (number: Int, text: String)? {
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
        where index == 0 ? line != mark : !isOwn(line) {
            return (index + 1, String(line.prefix(80)).printable)
        }
        return nil
    }

    /// Whether this command writes such lines below its mark.
    private static func isOwn(_ line: Substring) -> Bool {
        if line.isEmpty || line == "[push]" { return true }
        return Key.allCases.contains { key in
            guard line.hasPrefix(key.start) else { return false }
            let rest = line.dropFirst(key.start.count)
            // Not a comment behind the value.
            return rest.last == "\"" && !rest.dropLast().contains(where: \.isForbidden)
        }
    }

    /// Has a file say again what it said, or be none again.
    private func restore(_ path: String, to text: String?) throws(SystemError) {
        if let text { try FileContent.replace(path, with: Array(text.utf8)) } else { unlink(path) }
    }

    private func makeDirectory(_ path: String) throws(SystemError) {
        // Not those above it: a home without ~/.config has nobody's configuration yet, but a home it is.
        if let slash = path.lastIndex(of: "/") { mkdir(String(path[..<slash]), 0o700) }
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw .last("making \(path)") }
    }

    /// A line of the standard input, which a terminal does not show.
    private func readSecret() throws -> String {
        var settings = termios()
        let isTerminal = tcgetattr(STDIN_FILENO, &settings) == 0
        if isTerminal {
            var silent = settings
            silent.c_lflag &= ~tcflag_t(ECHO)
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
            Output.prompt(token ? "Access token: " : "Password of \(server.dropFirst("xmpp:".count)): ")
        }
        defer {
            if isTerminal {
                tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
                Output.prompt("\n")
            }
        }
        guard let line = readLine(), !line.isEmpty else { throw ValidationError("the standard input has no password") }
        return line
    }
}

extension Character {
    /// Whether a string of the file cannot hold it as it is.
    fileprivate var isForbidden: Bool { self == "\"" || self == "\\" || unicodeScalars.contains { $0.value < 0x20 } }
}
