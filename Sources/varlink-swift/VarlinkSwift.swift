// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials
internal import Glibc
internal import VarlinkDefinition

/// Makes a Swift file of each definition: `varlink-swift DEFINITION.varlink FILE.swift [...]`. Those that others refer
/// to come first.
@main struct VarlinkSwift {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard !arguments.isEmpty, arguments.count.isMultiple(of: 2) else {
            fail("usage: varlink-swift DEFINITION.varlink FILE.swift [...]")
        }
        var known: [[String]: String] = [:]
        for index in stride(from: 0, to: arguments.count, by: 2) {
            let source = arguments[index]
            do {
                let text = try String(contentsOfFile: source, encoding: .utf8)
                let definition = try InterfaceDefinition(text)
                let swift = SwiftWriter.write(definition, source: text, known: known)
                try swift.write(toFile: arguments[index + 1], atomically: true, encoding: .utf8)
                known.merge(SwiftWriter.enumerations(of: definition)) { first, _ in first }
            } catch {
                fail("\(source): \(error)")
            }
        }
    }

    private static func fail(_ message: String) -> Never {
        let line = "varlink-swift: \(message)\n"
        write(STDERR_FILENO, line, line.utf8.count)
        exit(1)
    }
}
