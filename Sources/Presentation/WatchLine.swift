// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtonePlatform
package import DialtoneVarlink

/// The lines of `dialtone watch`: the time, who, what happened, and what it rests on.
package struct WatchLine: Hashable, Sendable {
    /// When.
    package let time: Timestamp
    /// "network", or the connection's name, with its owner where that is not the reader.
    package let subject: String
    /// What happened.
    package let text: String
    /// The names of what changed, or the epoch.
    package let detail: String
    let tone: Style.Tone

    /// A change of the path to some host, or its present state when `changes` is empty.
    ///
    /// - Parameter subject: the host as a person writes it, or "network".
    package init(path: NetworkAPI.Path, of subject: String, changes: [String], at time: Timestamp) {
        self.time = time
        self.subject = subject
        text = PathText.network(path)
        detail = changes.joined(separator: ", ")
        tone = PathText.tone(path)
    }

    /// A connection as it is, for a snapshot or after a gap.
    package init(_ connection: ConnectionsAPI.Connection, at time: Timestamp, for reader: Reader = Reader()) {
        self.time = time
        subject = reader.subject(connection)
        let remark = ConnectionText.remark(connection, now: time)
        text =
            ConnectionText.state(connection.state)
            + (connection.interface.map { " over \($0)" } ?? "") + (remark.isEmpty ? "" : ": \(remark)")
        detail = "epoch \(connection.epoch)"
        tone = ConnectionText.tone(connection)
    }

    /// A change of the network's path as the history has it.
    init(_ change: ConnectionsAPI.NetworkChange) {
        let path = change.path
        time = change.time
        subject = "network"
        detail = change.changes.joined(separator: ", ")
        tone = PathText.tone(path)
        var text = PathText.network(path)
        if let previous = change.previousStatus, previous != change.status, let lasting = change.previousDuration {
            text += ", after \(PathText.status(previous)) for \(lasting.short)"
        }
        self.text = text
    }

    /// Something that happened to the agent.
    ///
    /// - Parameter death: how the run before ended, if it did not say that it did.
    init(_ change: ConnectionsAPI.AgentChange, after death: String? = nil) {
        time = change.time
        subject = "agent"
        detail = ""
        switch change.kind {
        case .started: (text, tone) = death.map { ("started; before that, \($0)", .warning) } ?? ("started", .faint)
        case .ended: (text, tone) = ("ended", .faint)
        case .resumed:
            let slept = change.slept.map { " after \($0.short)" }
            (text, tone) = ("the machine woke\(slept ?? "")", .faint)
        // Of a later version.
        default: (text, tone) = (change.kind.rawValue, .faint)
        }
    }

    /// An event of a connection.
    package init(_ event: ConnectionsAPI.Event, for reader: Reader = Reader()) {
        self.init(event, adding: nil, for: reader)
    }

    /// An event of a connection, and what else is to be said of it.
    init(_ event: ConnectionsAPI.Event, adding addition: String?, for reader: Reader) {
        let connection = event.connection
        time = event.time
        subject = reader.subject(connection)
        if let wake = event.wake {
            (text, tone) = WakeText.line(wake)
            detail = "wake \(wake.number)"
            return
        }
        detail = "epoch \(connection.epoch)"
        tone = ConnectionText.tone(connection)
        var text = ConnectionText.state(connection.state)
        if let previous = event.previousState, previous != connection.state {
            text = "\(ConnectionText.state(previous)) -> \(text)"
        }
        let remark = [Self.remark(event), addition ?? ""].filter { !$0.isEmpty }.joined(separator: ", ")
        self.text = remark.isEmpty ? text : "\(text): \(remark)"
    }

    /// A gap: changes were missed, and the lines after this one show where things stand.
    package init(gapAt time: Timestamp) {
        self.time = time
        subject = "gap"
        text = "changes were missed; this is where things stand"
        detail = ""
        tone = .warning
    }

    /// The agent went, and is waited for; or it is there again.
    package init(agentIsThere: Bool, at time: Timestamp) {
        self.time = time
        subject = "agent"
        text = agentIsThere ? "back" : "gone; waiting for it to come back"
        detail = ""
        tone = agentIsThere ? .good : .bad
    }

    private static func remark(_ event: ConnectionsAPI.Event) -> String {
        let connection = event.connection
        if connection.state == .ready, event.kind == .state {
            let interface = connection.interface.map { "over \($0)" }
            // A flow was there all the time; how long it took is no news, and why is.
            if event.previousState?.hasFlow == true {
                return [event.reason, interface].compactMap { $0 }.joined(separator: ", ")
            }
            let duration = event.previousDuration.map { "in \($0.short)" }
            return [interface, duration].compactMap { $0 }.joined(separator: " ")
        }
        var parts = [event.reason].compactMap { $0 }
        if let next = connection.nextAttemptAt {
            parts.append("\(ConnectionText.ordinal(connection.attempt)) try in \((next - event.time).short)")
        }
        return parts.joined(separator: ", ")
    }

    /// The line, with the wall clock's time of day; further ones below where the terminal is too narrow.
    ///
    /// - Parameters:
    ///   - subjectWidth: how wide the column of the subjects is.
    ///   - clock: writes an instant as the local time of day, as in `14:02:11.042`.
    package func lines(_ style: Style, subjectWidth: Int = 8, clock: (Timestamp) -> String) -> [String] {
        lines(behind: subject.padded(to: subjectWidth) + "  ", style, clock)
    }

    /// The same for who knows of whom it is.
    func linesWithoutSubject(_ style: Style, clock: (Timestamp) -> String) -> [String] {
        lines(behind: "", style, clock)
    }

    private func lines(behind subject: String, _ style: Style, _ clock: (Timestamp) -> String) -> [String] {
        let clock = clock(time)
        let indent = clock.count + 2 + subject.count
        let first = "\(style.paint(clock, .faint))  \(subject.printable)"
        let (text, detail) = (text.printable, detail.printable)
        let end = detail.isEmpty ? "" : "  " + style.paint(detail, .faint)
        // As wide as most texts are, so that what stands behind them stands in a column.
        let column = min(64, style.width.map { max($0 - indent - 2 - detail.count, 0) } ?? 64)
        guard let width = style.width, text.count > column else {
            return [first + style.paint(detail.isEmpty ? text : text.padded(to: column), tone) + end]
        }
        let margin = String(repeating: " ", count: min(indent, width / 2))
        var parts = text.wrapped(to: max(width - margin.count, 1), indent: 0)
        if detail.isEmpty || margin.count + (parts.last?.count ?? 0) + 2 + detail.count > width {
            if !detail.isEmpty { parts.append(detail) }
            return parts.enumerated().map { ($0 == 0 ? first : margin) + style.paint($1, tone) }
        }
        return parts.enumerated().map { index, part in
            (index == 0 ? first : margin) + style.paint(part, tone) + (index == parts.count - 1 ? end : "")
        }
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}

extension ConnectionsAPI.NetworkChange {
    /// The path that it tells of, as far as it does.
    var path: NetworkAPI.Path {
        let interface = interface.map { name in
            NetworkAPI.Interface(
                index: 0, name: name, kind: kind ?? .other, up: true, carrier: true, addresses: [],
                expensive: expensive, constrained: constrained)
        }
        return NetworkAPI.Path(
            generation: 0, status: status, reason: reason, coherent: true, interface: interface,
            gateway: gateway, source: source, isDirect: false, isLocalAddress: false,
            supportsIPv4: supportsIPv4, supportsIPv6: supportsIPv6, supportsDNS: supportsDNS,
            expensive: expensive, constrained: constrained)
    }
}
