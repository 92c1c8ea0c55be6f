// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneLabSupport
import Testing

/// A client library that clients of some language use.
enum ClientLibrary: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case swift = "Swift"
    case c = "C"
    case python = "Python"

    var testDescription: String { rawValue }

    /// The command of its driver: the program that does what the scenarios say, through that library alone.
    func driver() async throws -> [String] {
        switch self {
        case .swift: [LabAgent.program("lab-client")]
        case .c: [try await CLibrary.program("driver")]
        case .python: PythonLibrary.command("tests/driver.py")
        }
    }
}

/// A driver that runs: commands go to its standard input, a line each, and answers come back, a line each.
///
/// What it tells by itself begins with "* ".
///
/// | command | answer |
/// | --- | --- |
/// | `path HOST` | `path STATUS REASON`, as the interface calls them; `-` for no reason |
/// | `monitor-path HOST` | `ok`; then `* path STATUS REASON CHANGES` for the path and each change of it |
/// | `monitor` | `ok`; then `* snapshot NAME=STATE,…`, `* event SEQUENCE KIND NAME STATE`, `* gap`, `* lost` |
/// | `open NAME REMOTE` | `ok` |
/// | `adopt NAME REMOTE PORT` | `ok`: a socket to 127.0.0.1:PORT is handed in |
/// | `close NAME`, `redial NAME`, `acknowledge NAME WAKE` | `ok` |
/// | `list` | `connections NAME=STATE,…` |
/// | `take NAME` | `taken NAME EPOCH` |
/// | `send TEXT`, `receive` | `ok`, `received TEXT` or `received-end`: a line on the socket that is held |
/// | `park`, `abandon` | `ok`: the socket that is held is parked, or only closed |
/// | `forget NAME` | `ok`: Take, and the descriptor stays in the message |
/// | `descriptors` | `descriptors N`: how many the driver has |
///
/// What fails is answered by `error NAME …`, with the last part of the interface's name for it, `NotRunning` where no
/// agent listens and `Lost` where it went in the middle of the call.
final class ScenarioDriver: Sendable {
    private let process: LabProcess

    private init(_ process: LabProcess) { self.process = process }

    /// Starts the driver of `library` beside the agent of `home`.
    static func start(_ library: ClientLibrary, on machine: Namespace, _ home: DaemonHome) async throws -> Self {
        let environment = ["DIALTONE_SOCKET": home.socket].merging(DaemonHome.quietCrashes) { mine, _ in mine }
        return Self(try await machine.spawn(try await library.driver(), environment: environment))
    }

    /// Gives a command, and returns its answer.
    func ask(_ command: String) async throws -> String {
        let earlier = process.lines.last
        try process.send(command + "\n")
        return try await process.line(after: earlier, "the answer to \"\(command)\"") {
            $0.stream == .output && !$0.text.hasPrefix("* ")
        }.text
    }

    /// Waits for something that the driver tells by itself, beginning so.
    @discardableResult
    func told(_ beginning: String, after earlier: LabProcess.Line? = nil) async throws -> LabProcess.Line {
        try await process.line(after: earlier, "a line with \"* \(beginning)\"") {
            $0.text.hasPrefix("* \(beginning)")
        }
    }

    /// Waits until the driver, which monitors, has heard that a connection is in this state.
    func settled(_ name: String, _ state: ConnectionsAPI.State) async throws {
        _ = try await process.line("that \(name) is \(state.rawValue)") {
            $0.text.hasPrefix("* event ") && $0.text.hasSuffix(" \(name) \(state.rawValue)")
                || $0.text.hasPrefix("* snapshot ") && $0.text.hasSuffix("\(name)=\(state.rawValue)")
        }
    }

    /// Waits until the driver, which monitors, has heard of such an event.
    func heard(_ event: String) async throws {
        _ = try await process.line("the event \"\(event)\"") {
            $0.text.hasPrefix("* event ") && $0.text.hasSuffix(" \(event)")
        }
    }

    /// Ends its input, and waits for its end.
    func end() async throws -> LabProcess.Exit {
        process.closeInput()
        return try await process.exit()
    }
}
