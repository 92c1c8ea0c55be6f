// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Testing

/// The client library for Python, as it is in the source.
enum PythonLibrary {
    private static let folder = "\(SourceTree.root)/Clients/Python"

    /// Where the examples are.
    static let examples = "\(folder)/examples"
    /// In which any Python finds it, and writes nothing into the source.
    static let environment = ["PYTHONPATH": "\(folder)/src", "PYTHONDONTWRITEBYTECODE": "1"]

    /// The command of a program of the library's folder.
    static func command(_ program: String) -> [String] {
        ["env"] + environment.map { "\($0)=\($1)" } + ["python3", "\(folder)/\(program)"]
    }

    /// The command that runs a file of the library's own tests, and says which of them it skips.
    static func test(_ file: String) -> [String] {
        [PythonTests.python, "-B", "-m", "pytest", "-q", "-rs", "\(folder)/tests/\(file)"]
    }
}

/// The programs of docs/clients-python.md, and the library's own tests that need an agent; `ClientScenarios` has what
/// each library does.
@Suite(.lab)
struct PythonLibraryTests {
    @Test func `the first program of the tutorial tells each change of a path`() async throws {
        try await ClientTutorial("docs/clients-python.md").tellPaths(
            in: PythonLibrary.examples, environment: PythonLibrary.environment)
    }

    @Test func `the second program of the tutorial answers when the server has spoken`() async throws {
        try await ClientTutorial("docs/clients-python.md").answer(
            in: PythonLibrary.examples, environment: PythonLibrary.environment)
    }

    @Test(.python) func `its tests against the agent pass`() async throws {
        try await run("test_agent.py")
    }

    @Test(.python, .server("mosquitto")) func `paho-mqtt takes its socket from the agent`() async throws {
        try await run("test_paho.py")
    }

    /// Debian 12 has that version. The example is for the newer one.
    @Test(.python, .server("mosquitto")) func `so does paho-mqtt 1`() async throws {
        let older = "\(SourceTree.root)/.build/python-varlink/paho-1"
        try await run("test_paho.py", "-k", "not example", environment: ["PYTHONPATH": older])
    }

    private func run(_ file: String, _ options: String..., environment: [String: String] = [:]) async throws {
        let machine = try await Namespace.island()
        let programs = ["DIALTONED": LabAgent.program("dialtoned")]
        let tests = try await machine.outcome(
            PythonLibrary.test(file) + options, environment: environment.merging(programs) { mine, _ in mine })
        #expect(tests.exit == .status(0), "\(tests)")
        #expect(!tests.output.contains("skipped"), "\(tests)")
    }
}
