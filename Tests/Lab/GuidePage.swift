// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation

/// What a page of the documentation prints between its fences, for tests that do as it says.
struct GuidePage {
    /// What is between two fences.
    struct Block {
        /// What is behind the first fence: the language, and in docs/first-sleeping-client.md the name of the step.
        let heading: String
        let lines: [String]

        var text: String { lines.joined(separator: "\n") }
    }

    /// A command behind a prompt, and what it prints.
    struct Typed {
        let command: String
        var output: [String] = []
    }

    let blocks: [Block]

    /// Reads a page, by its path from the root of the source tree.
    init(_ path: String) throws {
        let text = try String(contentsOfFile: "\(SourceTree.root)/\(path)", encoding: .utf8)
        var (blocks, heading, lines) = ([Block](), String?.none, [String]())
        for line in text.components(separatedBy: "\n") {
            if let begun = heading, line == "```" {
                blocks.append(Block(heading: begun, lines: lines))
                (heading, lines) = (nil, [])
            } else if heading != nil {
                lines.append(line)
            } else if line.hasPrefix("```") {
                heading = String(line.dropFirst(3))
            }
        }
        self.blocks = blocks
    }

    /// The blocks of commands for a shell, without a name.
    var commands: [String] { blocks.filter { $0.heading == "sh" }.map(\.text) }

    /// What is typed in its sessions at a terminal.
    var typed: [Typed] {
        blocks.filter { $0.heading == "console" }.flatMap(\.lines).reduce(into: []) { typed, line in
            if line.hasPrefix("$ ") {
                typed.append(Typed(command: String(line.dropFirst(2))))
            } else if !typed.isEmpty {
                typed[typed.count - 1].output.append(line)
            }
        }
    }
}
