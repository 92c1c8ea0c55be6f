// SPDX-License-Identifier: Apache-2.0

/// How text is written: whether in colour, and how wide.
package struct Style: Hashable, Sendable {
    /// What a piece of text means; good news is green everywhere.
    package enum Tone: Hashable, Sendable {
        /// Something works.
        case good
        /// Something does not, for now.
        case warning
        /// Something does not, and a person should look.
        case bad
        /// Beside the point.
        case faint
        /// A heading.
        case strong
    }

    /// Whether escape sequences are written.
    package let hasColour: Bool
    /// How many columns there are; `nil` for as many as it takes, as in a file.
    package let width: Int?

    /// A style with or without colour.
    package init(hasColour: Bool, width: Int? = nil) {
        self.hasColour = hasColour
        self.width = width
    }

    /// Colour on a terminal, unless `NO_COLOR` is set to anything (https://no-color.org) or the terminal is dumb.
    package init(isTerminal: Bool, environment: [String: String], width: Int? = nil) {
        self.init(
            hasColour: isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb",
            width: width)
    }

    /// `text` in the colour of `tone` (ECMA-48, select graphic rendition).
    package func paint(_ text: String, _ tone: Tone) -> String {
        guard hasColour, !text.isEmpty else { return text }
        let code =
            switch tone {
            case .good: "32"
            case .warning: "33"
            case .bad: "31"
            case .faint: "2"
            case .strong: "1"
            }
        return "\u{1B}[\(code)m\(text)\u{1B}[0m"
    }
}
