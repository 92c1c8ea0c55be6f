// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The command line of a daemon, which has long options alone: `--name VALUE`, `--name=VALUE`, or `--name` for a flag;
/// and `-h` for `--help`. A value that begins like an option is given with "=".
/// `dialtone`, which has commands, has a parser from a library; that one brings megabytes with it.
package struct ProgramOptions: Hashable, Sendable {
    /// What is wrong with a command line.
    package struct Mistake: Error, Hashable, CustomStringConvertible {
        /// In words.
        package let description: String

        /// A mistake.
        package init(description: String) { self.description = description }
    }

    private var values: [String: String] = [:]

    /// Reads arguments, without the program's name. Of an option that is there twice, the last one counts.
    ///
    /// - Parameters:
    ///   - valued: the names, without dashes, of the options that have a value.
    ///   - flags: likewise, of those that have none.
    package init(_ arguments: [String], valued: Set<String>, flags: Set<String>) throws(Mistake) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "-h", flags.contains("help") {
                values["help"] = ""
                continue
            }
            guard argument.hasPrefix("--") else {
                throw Mistake(description: "Unexpected argument '\(argument)'")
            }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            if flags.contains(name), parts.count == 1 {
                values[name] = ""
            } else if valued.contains(name) {
                if parts.count > 1 {
                    values[name] = String(parts[1])
                } else if let value = rest.popFirst(), !value.hasPrefix("--"), value != "-h" {
                    values[name] = value
                } else {
                    throw Mistake(description: "Missing value for '--\(name)'")
                }
            } else {
                throw Mistake(description: "Unknown option '\(argument)'")
            }
        }
    }

    /// The value of an option.
    package subscript(name: String) -> String? { values[name] }

    /// Whether a flag is set.
    package func has(_ flag: String) -> Bool { values[flag] != nil }

    /// Reads this process's command line. `--help`, `--version` and a mistake end the process.
    ///
    /// - Parameters:
    ///   - usage: what `--help` writes; its first line begins with "Usage: PROGRAM".
    ///   - check: what else may be wrong.
    package static func read<Options>(
        usage: String, valued: Set<String>, flags: Set<String> = [],
        _ check: (ProgramOptions) throws(Mistake) -> Options
    ) -> Options {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do throws(Mistake) {
            let options = try ProgramOptions(
                arguments, valued: valued, flags: flags.union(["help", "version"]))
            if options.has("help") {
                writeLine(usage, to: STDOUT_FILENO)
                exit(EXIT_SUCCESS)
            }
            if options.has("version") {
                writeLine(Product.version, to: STDOUT_FILENO)
                exit(EXIT_SUCCESS)
            }
            return try check(options)
        } catch {
            let first = usage.prefix { $0 != "\n" }
            writeLine("Error: \(error.description)\n\(first)\n  See '--help' for more.", to: STDERR_FILENO)
            exit(EX_USAGE)
        }
    }
}
