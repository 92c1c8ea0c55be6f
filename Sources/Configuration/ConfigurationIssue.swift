// SPDX-License-Identifier: Apache-2.0

internal import DialtoneTOML

/// One thing that is wrong with, or worth knowing of, a configuration, and where it stands.
package struct ConfigurationIssue: Hashable, Sendable, CustomStringConvertible {
    /// The file's path.
    package var file: String
    /// Line and column, from one; `nil` when it is the file as such.
    package var position: Position?
    /// The key, with those of the tables around it: `connection.keepalive.interval`.
    package var key: String?
    /// What it is.
    package var message: String

    /// A place in a file.
    package struct Position: Hashable, Comparable, Sendable {
        /// The line, from one.
        package var line: Int
        /// The column, from one, in code points.
        package var column: Int

        /// By line, then by column.
        package static func < (left: Position, right: Position) -> Bool {
            (left.line, left.column) < (right.line, right.column)
        }
    }

    /// `FILE:LINE:COLUMN: KEY: MESSAGE`, as compilers write it and editors jump to it.
    package var description: String {
        "\(place): \(key.map { "\($0): " } ?? "")\(message)"
    }

    package var place: String {
        file + (position.map { ":\($0.line):\($0.column)" } ?? "")
    }
}

/// All that is wrong with a configuration, in the order of the files and of the text in them.
package struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// At least one.
    package var issues: [ConfigurationIssue]

    /// At least one issue.
    package init(issues: [ConfigurationIssue]) { self.issues = issues }

    /// A line for each.
    package var description: String {
        issues.map(\.description).joined(separator: "\n")
    }
}

/// The issues of one load as they are found.
package final class ConfigurationReport {
    /// How many errors, and how many notices, are listed: more than anybody mends before the next try. A megabyte of
    /// text can have a hundred thousand, each a line of the log.
    static let longest = 100

    private(set) var errors: [ConfigurationIssue] = []
    package private(set) var notices: [ConfigurationIssue] = []
    /// How many errors are not listed.
    package private(set) var omitted = 0

    /// How many errors there are, listed or not.
    var count: Int { errors.count + omitted }

    /// Whether no more errors are listed.
    var isFull: Bool { errors.count >= Self.longest }

    func error(
        _ file: String, _ position: TOMLPosition? = nil, _ key: String? = nil, _ message: @autoclosure () -> String
    ) {
        if isFull { omitted += 1 } else { errors.append(ConfigurationIssue(file, position, key, message())) }
    }

    func notice(_ file: String, _ position: TOMLPosition, _ key: String, _ message: String) {
        guard notices.count < Self.longest else { return }
        notices.append(ConfigurationIssue(file, position, key, message))
    }

    /// Says how many errors are not listed.
    ///
    /// - Throws: the errors, if there are any.
    package func check() throws(ConfigurationError) {
        guard let last = errors.last else { return }
        let more = ConfigurationIssue(last.file, nil, nil, "and \(omitted) more errors, here and in files after it")
        throw ConfigurationError(issues: omitted > 0 ? errors + [more] : errors)
    }

    /// Puts the errors of `file`, which were found table by table, in the order of its text.
    func sortErrors(from start: Int) {
        errors[start...].sort { left, right in
            guard let first = left.position, let second = right.position else { return false }
            return first < second
        }
    }
}

extension ConfigurationIssue {
    /// Something that is wrong with the file as such.
    package init(_ file: String, message: String) { self.init(file, nil, nil, message) }

    init(_ file: String, _ position: TOMLPosition?, _ key: String?, _ message: String) {
        self.file = file
        self.position = position.map { Position(line: $0.line, column: $0.column) }
        self.key = key?.excerpt(100)
        self.message = message.excerpt(400)
    }
}

extension String {
    /// The text, cut after so many characters: what a file holds may be quoted in a line of the log.
    fileprivate func excerpt(_ longest: Int) -> String {
        let beginning = prefix(longest)
        return beginning.endIndex == endIndex ? self : "\(beginning)…"
    }
}
