// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient

struct Open: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Have the agent open a connection and keep it.",
        discussion: """
            Prints the connection's name. `dialtone close` closes the connection. It outlives a killed or restarted \
            agent if the service manager keeps the agent's sockets; otherwise it ends with the agent.
            """)

    @Argument(help: "The server, as in tcp://sip.example.com:5060.", completion: .remotes)
    var remote: String

    @Option(help: "The connection's name; by default made from the server's host.")
    var name: String?

    @OptionGroup
    var policy: PolicyOptions

    func validate() throws {
        guard let name, let problem = ConnectionName.problem(name) else { return }
        throw ValidationError("--name \"\(name)\" \(problem)")
    }

    func run() async throws {
        let reply = try await DialtoneClient().call(
            ConnectionsAPI.Open.self,
            .init(remote: remote, name: name, settings: try policy.settings(to: remote)))
        Output.write([reply.name])
    }
}
