// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtonePresentation

/// Tables and colour.
@Suite struct TableTests {
    private func sample() -> Table {
        var table = Table(["NAME", "STATE", ""])
        table.add([.init("office"), .init("ready", .good), .init("")])
        table.add([.init("a"), .init("backing off", .warning), .init("refused, 4th try", .faint)])
        table.add([.init("é–ü"), .init("", .bad), .init("x")])
        return table
    }

    @Test func `a column is as wide as its widest cell, and no line ends in blanks`() {
        #expect(
            sample().lines(Sample.plain) == [
                "NAME    STATE",
                "office  ready",
                "a       backing off  refused, 4th try",
                "é–ü                  x",
            ])
    }

    @Test func `colour takes no room`() {
        let painted = sample().lines(Sample.colour)
        #expect(painted.map(withoutEscapes) == sample().lines(Sample.plain))
        #expect(
            painted[2] == "a       \u{1B}[33mbacking off\u{1B}[0m  \u{1B}[2mrefused, 4th try\u{1B}[0m",
            "the blanks between the columns are not coloured")
    }

    @Test func `a table without rows is its heading, and an empty row an empty line`() {
        var table = Table(["NAME", "STATE"])
        #expect(table.lines(Sample.plain) == ["NAME  STATE"])
        table.add([])
        table.add([.init(""), .init("")])
        #expect(table.lines(Sample.plain) == ["NAME  STATE", "", ""])
    }

    @Test(arguments: [
        (true, [:], true), (true, ["NO_COLOR": ""], true), (true, ["TERM": "xterm-256color"], true),
        (true, ["NO_COLOR": "1"], false), (true, ["NO_COLOR": "0"], false), (true, ["TERM": "dumb"], false),
        (false, [:], false), (false, ["TERM": "xterm"], false),
    ])
    func `there is colour on a terminal unless it, or the user, wants none`(
        isTerminal: Bool, environment: [String: String], hasColour: Bool
    ) {
        #expect(Style(isTerminal: isTerminal, environment: environment).hasColour == hasColour)
    }

    @Test func `without colour and without text nothing is painted`() {
        #expect(Sample.plain.paint("text", .bad) == "text")
        #expect(Sample.colour.paint("", .bad) == "")
        #expect(Sample.colour.paint("text", .strong) == "\u{1B}[1mtext\u{1B}[0m")
    }
}

/// `line` as a terminal shows it.
func withoutEscapes(_ line: String) -> String {
    line.replacing(/\u{1B}\[[0-9;]*m/, with: "")
}
