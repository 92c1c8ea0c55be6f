// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import Testing

/// The two programs that the tutorial of each client library has, and what each does.
enum ClientTutorial {
    /// Runs the first program, which tells each change of the path to a host, and ends if it has nothing to tell.
    static func tellPaths(by program: [String]) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        try await machine.landBridge()
        _ = try await home.start(on: machine)
        let environment = ["DIALTONE_SOCKET": home.socket]
        let running = try await machine.spawn(program + ["203.0.113.7"], environment: environment)
        let first = try await running.line(containing: "satisfied")
        #expect(first.text == "satisfied")
        try await machine.ip("link set bridge1 down")
        let loss = try await running.line(after: first, containing: "unsatisfied: noCarrier")
        try await machine.ip("link set bridge1 up")
        _ = try await running.line(after: loss, containing: "satisfied")
        let refused = try await machine.outcome(program + ["a..b"], environment: environment)
        #expect(refused.exit == .status(1) && refused.error.contains("target makes no sense"), "\(refused)")
    }

    /// Runs the second program, which takes a connection when the server has spoken, answers and parks, twice: what was
    /// parked another process can take.
    static func answer(by program: [String]) async throws {
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        _ = try await home.start(on: machine)
        let listener = try await machine.run { try TCPSocket.listening(on: 0) }
        let opened = try await home.dialtone(
            "open", "tcp://127.0.0.1:\(try listener.port())", "--name", "chat", on: machine)
        #expect(opened.exit == .status(0), "\(opened)")
        let server = try await machine.run { try listener.accept() }
        for line in ["hello", "again"] {
            let run = try await machine.spawn(program + ["chat"], environment: ["DIALTONE_SOCKET": home.socket])
            try await machine.run { try server.send("\(line)\n") }
            expect(try await machine.run { try server.receive() }, is: "GOT \(line)\n")
            expect(try await run.exit(), is: .status(0))
            #expect(run.text(of: .output) == line)
        }
    }
}
