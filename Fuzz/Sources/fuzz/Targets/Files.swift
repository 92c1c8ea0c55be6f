// SPDX-License-Identifier: Apache-2.0

internal import DialtoneProcesses
internal import DialtoneVarlink

@testable internal import DialtoneAgent
@testable internal import DialtoneConfiguration
@testable internal import DialtoneConnection
@testable internal import DialtonePersistence
@testable internal import DialtonePlatform
@testable internal import DialtoneTOML

extension FuzzTarget {
    /// A configuration file, to its last check.
    static let configuration = FuzzTarget(name: "configuration") { bytes in
        guard let entries = try? TOMLDocument.parse(bytes.text) else { return }
        var checks = ConfigurationChecks()
        // Nothing of this machine's may decide.
        checks.userNumber = { UInt32($0) ?? ($0 == "alice" ? 1000 : nil) }
        checks.identity = { user in
            user == 1000 ? .init(user: user, group: 1, groups: [1], name: "alice", home: "/", shell: "") : nil
        }
        checks.daemonUser = 0
        var reader = ConfigurationReader(checks, ConfigurationReport())
        reader.read(entries, of: "fuzzed.toml", isMain: bytes.count.isMultiple(of: 2))
    }

    /// The state: a whole file, or a record of one, which a checksum would let nothing through to.
    static let state = FuzzTarget(name: "state") { bytes in
        switch bytes.first.map({ $0 % 4 }) {
        case 0: _ = try? StateLog.read(Array(bytes.dropFirst()))
        case 1:
            var state = AgentState()
            state.apply(bytes.dropFirst())
            state.skip(events: bytes.count)
            let journal = state.journal(upTo: state.latest)
            precondition(journal.latest == state.latest)
            // What was read is written as it was read.
            _ = AgentState.record(state.events.map { .event($0) } + state.connections.values.map { .connection($0) })
            for numbered in state.events { _ = numbered.event.wire(sequence: numbered.sequence) }
        case 2:
            guard let kept = try? SavedConnection(FieldReader(bytes.dropFirst())) else { return }
            var fields = FieldWriter()
            kept.write(&fields)
            let again = try? SavedConnection(FieldReader(fields.bytes[...]))
            precondition(again != nil, "what was written cannot be read")
            _ = ConnectionRegistry.policy(of: kept, nil)
            _ = (LeftOpening(given: kept.opening), LeftAnswers(given: kept.answers))
        default: _ = try? SavedEvent(bytes: Array(bytes.dropFirst())).wire(sequence: .max)
        }
    }

    /// A line of the history.
    static let history = FuzzTarget(name: "history") { bytes in
        let text = SealedLine.open(bytes[...]) ?? bytes[...]
        precondition(SealedLine.open(SealedLine.line(text).dropLast()) == text)
        guard let line = HistoryFiles.Line(bytes: text) else { return }
        precondition(HistoryFiles.Line(bytes: line.bytes[...]) == line, "what was written cannot be read")
    }

    /// What was learned of keepalives.
    static let intervals = FuzzTarget(name: "intervals") { bytes in
        _ = SealedLine.text(in: bytes)
        let users = AdaptiveInterval.users(in: bytes.text)
        let text = AdaptiveInterval.text(of: users)
        precondition(AdaptiveInterval.text(of: AdaptiveInterval.users(in: text)) == text)
        guard var learned = users.first?.learned, let network = learned.networks.first?.identity else { return }
        for kind in [KeepaliveProtocol.crlf, .mqtt, .websocket] {
            let figures = kind.figures
            precondition(figures.intervals.contains(learned.interval(on: network, figures)))
            learned.survived(.seconds(1 << 40), on: network, figures)
            learned.died(after: .seconds(-1), sentAt: .zero, on: network, figures)
            precondition(figures.intervals.contains(learned.interval(on: network, figures)))
        }
    }
}
