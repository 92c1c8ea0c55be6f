// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtonePlatform
internal import DialtonePresentation

/// Which connections are shown, in which order, and how.
struct SelectionOptions: ParsableArguments {
    /// How a table is laid out; the raw values are the words of the command line.
    enum Layout: String, ExpressibleByArgument, CaseIterable, Sendable {
        /// As the terminal is wide.
        case table
        /// With all columns, in lines of any length.
        case wide
        /// For programs.
        case json
    }

    @Flag(help: "Only connections that are down.")
    var down = false

    @Option(
        help: ArgumentHelp(
            "Only connections in this state: \(ConnectionsAPI.State.words). May be repeated.", valueName: "state"),
        completion: .list(ConnectionsAPI.State.allCases.map(\.rawValue)), transform: ConnectionsAPI.State.init(word:))
    var state: [ConnectionsAPI.State] = []

    @Option(help: "Sort by name, state (what is down first), since (the last change first) or remote.")
    var sort: ConnectionSelection.Order?

    @Option(name: .shortAndLong, help: "Write a table that fits the terminal, a wide one with all columns, or json.")
    var output = Layout.table

    @Option(
        help: ArgumentHelp(
            "Write these fields of each connection, a line each: a list (name,state,security.version), separated by "
                + "tabs, or a template ('{name} is {state}'). Fields have the names that they have in JSON.",
            valueName: "fields"),
        transform: { text in
            guard let template = FieldTemplate(text) else {
                throw ValidationError(
                    "invalid fields \"\(text)\" (names separated by commas, or a template such as '{name} is {state}')")
            }
            return template
        })
    var format: FieldTemplate?

    func validate() throws {
        if format != nil, output != .table {
            throw ValidationError("--format says how each connection is written: it takes no --output")
        }
        let known = ConnectionsAPI.Connection.fieldNames
        guard let unknown = format?.fields.first(where: { !known.contains($0) }) else { return }
        if Layout(rawValue: unknown) != nil {
            throw ValidationError("--format takes fields of connections; did you mean \"--output \(unknown)\"?")
        }
        let advice = suggestion(for: unknown, among: known).map { "; did you mean \"\($0)\"?" } ?? ""
        throw ValidationError("a connection has no field \"\(unknown)\"\(advice)")
    }

    /// Refuses a second way to say how connections are written.
    func refuse(json: Bool) throws {
        if json, format != nil || output == .wide {
            throw ValidationError("--json takes neither --format nor --output wide")
        }
    }

    /// Those that are meant, of one user or of all.
    func selection(_ owner: OwnerOption) -> ConnectionSelection {
        ConnectionSelection(onlyDown: down, states: state, owner: owner.number, order: sort)
    }
}

extension ConnectionSelection.Order: ExpressibleByArgument {}

extension ConnectionsAPI.State {
    /// All of them, for the help.
    fileprivate static var words: String { allCases.map(\.rawValue).joined(separator: ", ") }

    fileprivate init(word: String) throws {
        // Also as the table writes it: "backing off".
        let plain = word.lowercased().filter(\.isLetter)
        guard let state = Self.allCases.first(where: { $0.rawValue.lowercased() == plain }) else {
            let advice = suggestion(for: word, among: Self.allCases.map(\.rawValue)).map { "; did you mean \"\($0)\"?" }
            throw ValidationError("no state is called \"\(word)\"\(advice ?? " (\(Self.words))")")
        }
        self = state
    }
}
