// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlinkDefinition
internal import DialtoneVarlinkGeneration
internal import FoundationEssentials
internal import Glibc

/// Makes of the definitions of interfaces what is needed elsewhere:
///
///     varlink-swift MODULE DEFINITION.varlink FILE.swift [...]   a Swift file of each, for a module
///     varlink-swift --manual DATE PAGE DEFINITION.varlink [...]  a page of the manual of all
///     varlink-swift --python FILE.py DEFINITION.varlink [...]    a Python module of all
///
/// Definitions that others refer to come first.
@main struct VarlinkSwift {
    static func main() {
        var arguments = Array(CommandLine.arguments.dropFirst())
        do {
            if arguments.count > 3, arguments[0] == "--manual" {
                let definitions = try arguments[3...].map { try read($0).definition }
                return try write(ManualWriter.write(definitions, date: arguments[1]), to: arguments[2])
            }
            if arguments.count > 2, arguments[0] == "--python" {
                let definitions = try arguments[2...].map { try read($0).definition }
                return try write(PythonWriter.write(definitions), to: arguments[1])
            }
            guard arguments.count > 2, !arguments.count.isMultiple(of: 2) else {
                fail(
                    "usage: varlink-swift MODULE|--manual DATE PAGE|--python FILE DEFINITION.varlink [FILE.swift] [...]"
                )
            }
            let module = arguments.removeFirst()
            var known: [[String]: String] = [:]
            while !arguments.isEmpty {
                let (text, definition) = try read(arguments.removeFirst())
                try write(
                    SwiftWriter.write(definition, source: text, known: known, module: module),
                    to: arguments.removeFirst())
                known.merge(SwiftWriter.enumerations(of: definition)) { first, _ in first }
            }
        } catch {
            fail("\(error)")
        }
    }

    private static func read(_ path: String) throws -> (text: String, definition: InterfaceDefinition) {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        do {
            return (text, try InterfaceDefinition(text))
        } catch {
            fail("\(path): \(error)")
        }
    }

    private static func write(_ text: String, to path: String) throws {
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static func fail(_ message: String) -> Never {
        let line = "varlink-swift: \(message)\n"
        Glibc.write(STDERR_FILENO, line, line.utf8.count)
        exit(1)
    }
}
