// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Testing

@Suite struct ProgramOptionsTests {
    private static func options(_ arguments: [String]) throws(ProgramOptions.Mistake) -> ProgramOptions {
        try ProgramOptions(arguments, valued: ["config", "socket"], flags: ["help", "check"])
    }

    @Test(arguments: [
        ([], nil), (["--config", "a"], "a"), (["--config=a"], "a"), (["--config=a=b"], "a=b"), (["--config="], ""),
        (["--config", ""], ""), (["--config=--check"], "--check"), (["--config", "-"], "-"),
        (["--config", "a", "--check", "--config=b"], "b"),
    ])
    func `a value is what follows its option`(arguments: [String], value: String?) throws {
        #expect(try Self.options(arguments)["config"] == value)
    }

    @Test(arguments: [["-h"], ["--help"], ["--config", "a", "-h"], ["-h", "--check"]])
    func `help is asked for in two ways`(arguments: [String]) throws {
        #expect(try Self.options(arguments).has("help"))
    }

    @Test(arguments: [
        (["--config"], "Missing value for '--config'"), (["--config", "--help"], "Missing value for '--config'"),
        (["--config", "-h"], "Missing value for '--config'"),
        (["--config", "--socket", "s"], "Missing value for '--config'"),
        (["--check=yes"], "Unknown option '--check=yes'"), (["--confg", "a"], "Unknown option '--confg'"),
        (["--"], "Unknown option '--'"), (["-c"], "Unexpected argument '-c'"), (["file"], "Unexpected argument 'file'"),
        ([""], "Unexpected argument ''"),
    ])
    func `a mistake is told with what was written`(arguments: [String], description: String) {
        #expect(throws: ProgramOptions.Mistake(description: description)) { try Self.options(arguments) }
    }
}
