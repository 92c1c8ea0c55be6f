// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePlatform
internal import Glibc

struct Adopt: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Have the agent keep a connection that another program opened.",
        discussion: """
            Inherits the socket as a descriptor, as in `dialtone adopt chat --fd 3 3<>/dev/tcp/192.0.2.1/5222` in \
            bash. Prints the connection's name.
            """)

    @Argument(help: "The connection's name.")
    var name: String

    @Option(help: ArgumentHelp("The socket's descriptor.", valueName: "number"))
    var fd: Int32

    @Option(
        help: ArgumentHelp(
            "The server to dial when the socket is lost, as in tcp://chat.example.com:5222; by default none.",
            valueName: "url"))
    var remote: String?

    @OptionGroup
    var policy: PolicyOptions

    func validate() throws {
        if let problem = ConnectionName.problem(name) { throw ValidationError("the name \"\(name)\" \(problem)") }
        guard fd >= 0, fcntl(fd, F_GETFD) >= 0 else {
            throw ValidationError(
                "--fd \(fd): no such descriptor is open; give it one, as in 3<>/dev/tcp/192.0.2.1/5222"
            )
        }
    }

    func run() async throws {
        let name = try await DialtoneClient().adopt(
            OwnedDescriptor(fd), as: name, remote: remote, settings: try policy.settings(to: remote))
        Output.write([name])
    }
}
