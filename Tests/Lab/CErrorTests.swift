// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport
import DialtoneVarlinkDefinition
import Foundation
import Testing

@testable import DialtoneVarlink

/// The errors of the interfaces, as programs in C are told them, beside what those in Swift are told.
@Suite(.lab)
struct CErrorTests {
    /// An answer of the agent to a call of `method`.
    private struct Answer {
        let method: String
        let name: String
        /// As JSON.
        let parameters: String

        /// What a program in Swift is told.
        var sentence: String {
            DialtoneError.refused(method: method, VarlinkFailure(name: name, received: Array(message.utf8))).description
        }

        var message: String { #"{"error":"\#(name)","parameters":\#(parameters)}"# }
    }

    /// What only programs in Swift or only those in C are told to do about it.
    private static let ownAdvice = [" Say whose with --owner.", " Say whose with dialtone_set_owner()."]

    @Test func `each error has the same sentence in Swift and in C`() async throws {
        let definitions = try [ConnectionsAPI.description, NetworkAPI.description].map { try InterfaceDefinition($0) }
        let close = ConnectionsAPI.Close.name
        var answers = definitions.flatMap { Self.answers(of: $0, to: ConnectionsAPI.Take.name) }
        answers += Self.answers(of: try InterfaceDefinition(ServiceAPI.description), to: close)
        answers.append(Answer(method: "a.B", name: ServiceAPI.PermissionDenied.errorName, parameters: "{}"))
        // Neither library causes them: a sentence has no one to read it.
        answers.removeAll { $0.name.hasSuffix(".ExpectedMore") || $0.name.hasSuffix(".MethodNotImplemented") }

        let machine = try await Namespace.create("a compiler's")
        let printed = try await machine.command(
            [try await CLibrary.program("sentences")],
            input: answers.map { "\($0.method) \($0.message)\n" }.joined())
        let lines = printed.split(separator: "\n").map(String.init)
        #expect(lines.count == answers.count, "\(printed)")
        let header = try String(contentsOfFile: "\(SourceTree.root)/Clients/C/include/dialtone.h", encoding: .utf8)
        for (answer, line) in zip(answers, lines) {
            let number = String(line.prefix { $0 != " " })
            #expect(Self.common(String(line.dropFirst(number.count + 1))) == Self.common(answer.sentence))
            #expect(!answer.sentence.contains("The agent refused "), "\(answer.name) has no sentence")
            if answer.name.hasPrefix("org.dialtone.") {
                let name = String(answer.name.split(separator: ".").last!)
                #expect(Self.documentedNumber(of: name, in: header) == number, "\(name)")
            }
        }
    }

    private static func common(_ sentence: String) -> String {
        ownAdvice.reduce(sentence) { $0.hasSuffix($1) ? String($0.dropLast($1.count)) : $0 }
    }

    /// The number that the list in the comment of `dialtone_error_text` has before this name.
    private static func documentedNumber(of name: String, in header: String) -> String? {
        guard let place = header.range(of: "\\b\(name)\\b", options: .regularExpression) else { return nil }
        let numbers = header[..<place.lowerBound].matches(of: /-(E[A-Z]+)\b/)
        return numbers.last.map { String($0.output.1) }
    }

    /// Answers with each error of an interface, and among them each value of its enumerations.
    private static func answers(of definition: InterfaceDefinition, to method: String) -> [Answer] {
        definition.errors.flatMap { error in
            samples(of: error.kind, in: definition).map {
                Answer(method: method, name: "\(definition.name).\(error.name)", parameters: $0)
            }
        }
    }

    /// Values of a kind, as JSON.
    private static func samples(of kind: InterfaceDefinition.Kind, in definition: InterfaceDefinition) -> [String] {
        switch definition.resolve(kind) {
        case .bool: return ["true"]
        case .int: return ["7", "0"]
        case .float: return ["1.5"]
        case .string: return ["\"a word\""]
        case .enumeration(let cases): return cases.map { "\"\($0)\"" }
        case .optional(let kind): return samples(of: kind, in: definition)
        case .array(let kind): return ["[\(samples(of: kind, in: definition).joined(separator: ","))]"]
        case .named: return []
        case .object(let fields):
            let values = fields.map { samples(of: $0.kind, in: definition) }
            return (0..<(values.map(\.count).max() ?? 1)).map { index in
                let members = zip(fields, values).map { "\"\($0.name)\":\($1[index % $1.count])" }
                return "{\(members.joined(separator: ","))}"
            }
        }
    }
}
