// SPDX-License-Identifier: Apache-2.0

/// What is known, and which episodes follow from it.
extension NoticeBoard {
    // MARK: - What is known

    mutating func learn(_ report: WatchedConnection, at now: Duration, _ effects: inout [NoticeEffect]) {
        var known = connections[report.name] ?? Known(report: report)
        known.report = report
        switch report.login {
        case .refused(let why):
            known.loginRefusal = Trouble(
                since: known.loginRefusal?.since ?? now, reason: why ?? known.loginRefusal?.reason)
        case .accepted: known.loginRefusal = nil
        case .asBefore: break
        }
        switch report.certificate {
        case .ends(let why): known.certificate = Trouble(since: known.certificate?.since ?? now, reason: why)
        case .lasts: known.certificate = nil
        case .unknown: break
        }
        known.wake =
            report.isWakeFailed
            ? Trouble(since: known.wake?.since ?? now, reason: report.wakeDetail ?? known.wake?.reason) : nil
        known.unread = report.hasUnread ? known.unread ?? Trouble(since: now, reason: nil) : nil
        connections[report.name] = known
        follow(connection: report.name, at: now, &effects)
    }

    mutating func forget(_ name: String, _ effects: inout [NoticeEffect]) {
        connections[name] = nil
        for event in NoticeRule.Event.allCases where event.isOfConnection {
            end(NoticeSubject(event, name), &effects)
        }
    }

    // MARK: - What follows

    mutating func followAll(at now: Duration, _ effects: inout [NoticeEffect]) {
        for name in connections.keys.sorted() { follow(connection: name, at: now, &effects) }
        for app in apps.keys.sorted() { follow(app: app, at: now, &effects) }
        followPush(at: now, &effects)
    }

    private mutating func follow(connection name: String, at now: Duration, _ effects: inout [NoticeEffect]) {
        guard let known = connections[name] else { return }
        let report = known.report
        // One outage is one notification: the one that says more. What the user has no rule for says nothing.
        let hasRefusal = known.loginRefusal != nil && rule(for: .loginRefused, of: name) != nil
        let hasFailedWake = known.wake != nil && rule(for: .wakeFailed, of: name) != nil
        let down = report.downSince.map { Trouble(since: $0, reason: report.failure) }
        let all: [(NoticeRule.Event, Trouble?)] = [
            (.connectionDown, hasRefusal ? nil : down), (.loginRefused, known.loginRefusal), (.wakeFailed, known.wake),
            (.certificateEnds, known.certificate), (.bytesUnread, hasFailedWake ? nil : known.unread),
        ]
        for (event, trouble) in all {
            follow(NoticeSubject(event, name), trouble, connection: name, at: now, &effects)
        }
    }

    mutating func follow(app: String, at now: Duration, _ effects: inout [NoticeEffect]) {
        follow(NoticeSubject(.appNotStarted, app), apps[app], connection: nil, at: now, &effects)
    }

    mutating func followPush(at now: Duration, _ effects: inout [NoticeEffect]) {
        for episode in episodes where episode.subject.event == .loginRefused {
            let name = episode.subject.name
            if connections[name] == nil, name != pushRefusal?.server { end(episode.subject, &effects) }
        }
        guard let (server, trouble) = pushRefusal else { return }
        follow(NoticeSubject(.loginRefused, server), trouble, connection: pushConnection, at: now, &effects)
    }

    private func rule(for event: NoticeRule.Event, of name: String) -> NoticeRule? {
        rules.first { $0.applies(to: event, of: name) }.flatMap { $0.isShown ? $0 : nil }
    }

    private mutating func follow(
        _ subject: NoticeSubject, _ trouble: Trouble?, connection: String?, at now: Duration,
        _ effects: inout [NoticeEffect]
    ) {
        guard let trouble, let rule = rule(for: subject.event, of: subject.name) else { return end(subject, &effects) }
        if let index = episodes.firstIndex(where: { $0.subject == subject }) {
            let distance = episodes[index].trouble.since - trouble.since
            if max(distance, .zero - distance) < Self.sameTime {
                let waitChanges = episodes[index].rule.after != rule.after
                episodes[index].trouble.reason = trouble.reason
                episodes[index].rule = rule
                if waitChanges, case .waiting = episodes[index].stage {
                    episodes[index].stage = .waiting(until: episodes[index].trouble.since + rule.after)
                }
                return
            }
            // The end of the one before was missed.
            end(subject, &effects)
        }
        guard episodes.count < Self.mostEpisodes else {
            if !isFull { effects.append(.full) }
            return isFull = true
        }
        episodes.append(
            Episode(
                subject: subject, connection: connection, rule: rule, trouble: trouble,
                stage: .waiting(until: trouble.since + rule.after)))
    }

    private mutating func end(_ subject: NoticeSubject, _ effects: inout [NoticeEffect]) {
        guard let index = episodes.firstIndex(where: { $0.subject == subject }) else { return }
        let episode = episodes.remove(at: index)
        isFull = false
        switch episode.stage {
        case .shown(let id, _): effects.append(.withdraw(id))
        // Another one, if the daemon has it by then, is withdrawn when it says its number.
        case .asked(_, let id?): effects.append(.withdraw(id))
        case .waiting, .due, .asked(_, nil), .seen: break
        }
    }
}
