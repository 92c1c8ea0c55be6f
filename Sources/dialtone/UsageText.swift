// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// What the parser of arguments says of a mistake, in the words of the other errors.
enum UsageText {
    /// What it begins with.
    static let prefix = "Error: "

    /// The same without that prefix, and with the quotes of the other errors; of a command that does not exist, with
    /// the one that was probably meant.
    static func reworded(_ text: String, arguments: [String], commands: [String]) -> String {
        var lines = text.dropFirst(prefix.count).split(separator: "\n", omittingEmptySubsequences: false)
        let first = lines.isEmpty ? "" : String(lines.removeFirst())
        var message = withDoubleQuotes(first)
        if let word = arguments.dropFirst().first, !word.hasPrefix("-"), !commands.contains(word) {
            message = unknownCommand(word, among: commands)
        }
        return ([message] + lines.map(String.init)).joined(separator: "\n")
    }

    /// That there is no such command, and which was probably meant.
    static func unknownCommand(_ word: String, among commands: [String]) -> String {
        let meant = suggestion(for: word, among: commands).map { "; did you mean \"\($0)\"?" }
        return "there is no command \"\(word)\"\(meant ?? "")"
    }

    /// With quotes of two strokes around what stood in quotes of one; an apostrophe is within a word.
    private static func withDoubleQuotes(_ text: String) -> String {
        var result = ""
        var isInside = false
        let characters = Array(text)
        for (index, character) in characters.enumerated() {
            let before = index > 0 ? characters[index - 1] : " "
            let after = index + 1 < characters.count ? characters[index + 1] : " "
            let isOpening = !isInside && (before == " " || before == "(")
            let isClosing = isInside && !(after.isLetter || after.isNumber)
            guard character == "'", isOpening || isClosing else {
                result.append(character)
                continue
            }
            isInside.toggle()
            result.append("\"")
        }
        return result
    }
}
