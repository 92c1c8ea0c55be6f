// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient

struct Open: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Have the agent open a connection and keep it.",
        discussion: """
            Writes the connection's name. It is closed by `dialtone close`. It outlives an agent that is killed or \
            restarted under a service manager that keeps its sockets, and ends with any other.
            """)

    @Argument(help: "Where it leads, as in tcp://sip.example.com:5060.", completion: .remotes)
    var remote: String

    @Option(help: "Its name; by default one made of the remote's host.")
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
            .init(remote: remote, name: name, settings: try policy.settings()))
        Output.write([reply.name])
    }
}
