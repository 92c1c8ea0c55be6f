// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtonePlatform
import Glibc

/// Opens a connection. The agent keeps it when this program has ended.
@main
struct SleepingClient {
    let agent = DialtoneClient()
    let name: String

    static func main() async throws {
        guard CommandLine.arguments.count == 3 else {
            print("usage: sleeping-client NAME URL")
            exit(64)
        }
        let client = SleepingClient(name: CommandLine.arguments[1])
        try await client.run(CommandLine.arguments[2])
    }

    func run(_ remote: String) async throws {
        do throws(DialtoneError) {
            _ = try await agent.open(.init(remote: remote, name: name))
        } catch {
            // An earlier run may have opened it.
            guard error.code == .nameTaken else { throw error }
        }
    }
}
