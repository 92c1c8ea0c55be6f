// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Foundation
import Testing

/// The client library for Python by itself: its tests with a server that stands in for the agent, and its types.
@Suite(
    .enabled(if: PyPI.python != nil, "what the tests need from PyPI could not be installed"),
    .timeLimit(.minutes(5)))
struct PythonLibraryTests {
    private static let folder =
        URL(fileURLWithPath: #filePath).appendingPathComponent("../../../Clients/Python").standardizedFileURL.path

    @Test(arguments: ["test_wire.py", "test_descriptors.py", "test_events.py", "test_taken.py", "test_package.py"])
    func `its own tests pass`(file: String) async {
        let tests = await PythonClients.run(["-B", "-m", "pytest", "-q", "-rs", "\(Self.folder)/tests/\(file)"])
        #expect(tests.status == 0, "\(tests.output)\(tests.error)")
        #expect(!tests.output.contains("skipped"), "\(tests.output)")
    }

    /// The tests beside it, which use it as a program would.
    @Test func `its types are found correct by mypy, for the oldest Python and for this one`() async {
        let settings = ["-m", "mypy", "--config-file", "\(Self.folder)/pyproject.toml", "--cache-dir", "/dev/null"]
        let here = await PythonClients.run(settings + ["src", "tests", "examples"].map { "\(Self.folder)/\($0)" })
        #expect(here.status == 0, "\(here.output)\(here.error)")
        let oldest = await PythonClients.run(settings + ["--python-version", "3.9", "\(Self.folder)/src"])
        #expect(oldest.status == 0, "\(oldest.output)\(oldest.error)")
    }
}
