// SPDX-License-Identifier: Apache-2.0

/// A program that is to be launched.
package struct ProgramRequest: Hashable, Sendable {
    /// How the program finds the connection's socket.
    package enum Streams: String, Hashable, Sendable {
        /// As descriptor 3, in the convention of sd_listen_fds(3).
        case passed
        /// As its standard input and output, as inetd's programs do.
        case standard
    }

    /// The program, by its absolute path, and its arguments.
    package var command: [String]
    /// Whose it is to be.
    package var identity: ProgramIdentity
    /// How it finds the socket.
    package var streams: Streams
    /// The connection's name.
    package var connection: String
    /// What it finds in its environment besides.
    package var variables: [String: String]

    /// A request.
    package init(
        command: [String], identity: ProgramIdentity, streams: Streams, connection: String,
        variables: [String: String] = [:]
    ) {
        self.command = command
        self.identity = identity
        self.streams = streams
        self.connection = connection
        self.variables = variables
    }

    /// The connection's name in `$LISTEN_FDNAMES`, where a colon parts one name from the next (sd_listen_fds(3)).
    var descriptorName: String { String(connection.map { $0 == ":" ? "_" : $0 }) }

    /// The environment but for `LISTEN_PID`, in a fixed order.
    func environment(withSocket: Bool) -> [String] {
        var all = identity.environment
        all.merge(variables) { $1 }
        if withSocket, streams == .passed {
            all["LISTEN_FDS"] = "1"
            all["LISTEN_FDNAMES"] = descriptorName
        }
        return all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    }
}
