// SPDX-License-Identifier: Apache-2.0

/// What the daemon is told, and what it tells.
extension NoticeBoard {
    // MARK: - Told by the daemon

    mutating func daemonCame(at now: Duration) {
        daemonWent()
        (hasBus, isDaemonGone) = (true, false)
        quietUntil = lastShownAt.map { $0 + Self.daemonPause } ?? now
    }

    mutating func daemonWent() {
        isDaemonGone = true
        for index in episodes.indices {
            switch episodes[index].stage {
            case .asked, .shown: (episodes[index].stage, episodes[index].told) = (.due, nil)
            case .waiting, .due, .seen: break
            }
        }
    }

    mutating func shown(_ attempt: UInt64, as id: UInt32, at now: Duration, _ effects: inout [NoticeEffect]) {
        guard let index = index(ofAttempt: attempt) else {
            // It is over, or another daemon has been given it since. Where this number is shown by that one, it stays.
            if index(of: id) == nil { effects.append(.withdraw(id)) }
            return
        }
        isDaemonGone = false
        episodes[index].stage = .shown(id, since: now)
    }

    mutating func notShown(_ attempt: UInt64) {
        guard let index = index(ofAttempt: attempt) else { return }
        isDaemonGone = true
        (episodes[index].stage, episodes[index].told) = (.due, nil)
    }

    mutating func pressed(_ id: UInt32, at now: Duration, _ effects: inout [NoticeEffect]) {
        guard let index = index(of: id) else { return }
        let episode = episodes[index]
        if let command = episode.rule.command {
            effects.append(.run(command.arguments, about: episode.subject))
        } else if let connection = episode.connection, episode.subject.event.isRedialled {
            effects.append(.redial(connection))
        } else {
            return
        }
        // Some daemons close it by themselves then, and some do not.
        effects.append(.withdraw(id))
        let again = episode.rule.after > .zero ? episode.rule.after : Self.patience
        (episodes[index].stage, episodes[index].told) = (.waiting(until: now + again), nil)
    }

    func index(of id: UInt32) -> Int? {
        episodes.firstIndex { episode in
            switch episode.stage {
            case .shown(id, _), .asked(_, id): true
            case .waiting, .due, .asked, .shown, .seen: false
            }
        }
    }

    private func index(ofAttempt number: UInt64) -> Int? {
        episodes.firstIndex { if case .asked(number, _) = $0.stage { true } else { false } }
    }

    // MARK: - Telling the daemon

    /// Shows what is due, and what has another text.
    mutating func show(at now: Duration, _ effects: inout [NoticeEffect]) {
        for index in episodes.indices {
            guard case .waiting(let time) = episodes[index].stage, time <= now, isKnown(episodes[index]) else {
                continue
            }
            let isLate = now - time > Self.lateness
            episodes[index].stage = isLate ? .waiting(until: now + Self.settling) : .due
            // Something new: a daemon may be there that the bus starts only now.
            if !isLate { isDaemonGone = false }
        }
        var places = Self.mostShown - episodes.count { $0.isOnScreen }
        for index in episodes.indices where isKnown(episodes[index]) {
            switch episodes[index].stage {
            case .due where hasBus && !isDaemonGone && now >= quietUntil && places > 0:
                places -= 1
                lastShownAt = now
                tell(index, replacing: nil, &effects)
            case .shown(let id, let since)
            where content(of: episodes[index]) != episodes[index].told
                && (!episodes[index].wasUpdated || now >= since + Self.updatePause):
                episodes[index].wasUpdated = true
                tell(index, replacing: id, &effects)
            case .waiting, .due, .asked, .shown, .seen: break
            }
        }
    }

    private mutating func tell(_ index: Int, replacing id: UInt32?, _ effects: inout [NoticeEffect]) {
        let content = content(of: episodes[index])
        episodes[index].told = content
        episodes[index].stage = .asked(attempt: nextAttempt, updating: id)
        effects.append(
            .show(
                Notice(subject: episodes[index].subject, content: content, replaces: id), attempt: nextAttempt))
        nextAttempt += 1
    }

    /// What an episode says.
    func content(of episode: Episode) -> Notice.Content {
        func filled(_ text: NoticeText, _ limit: Int) -> String {
            text.filled(
                name: episode.subject.name, reason: episode.trouble.reason, since: clockText(episode.trouble.since),
                limit: limit)
        }
        let usual = episode.subject.event.isRedialled && episode.connection != nil ? "Redial" : nil
        return Notice.Content(
            title: filled(episode.rule.title, Self.longestTitle), body: filled(episode.rule.body, Self.longestBody),
            urgency: episode.rule.urgency, button: episode.rule.command?.label ?? usual)
    }

    /// Whether anything is known of what it is about, just now.
    private func isKnown(_ episode: Episode) -> Bool {
        isAgentKnown || connections[episode.subject.name] == nil
    }

    mutating func setDeadline(at now: Duration) {
        let hasRoom = episodes.count { $0.isOnScreen } < Self.mostShown
        deadline =
            episodes.compactMap { episode -> Duration? in
                guard isKnown(episode) else { return nil }
                return switch episode.stage {
                case .waiting(let time): time
                case .due: hasRoom && hasBus && !isDaemonGone ? quietUntil : nil
                case .shown(_, let since): content(of: episode) != episode.told ? since + Self.updatePause : nil
                case .asked, .seen: nil
                }
            }.filter { $0 > now }.min()
    }
}

extension NoticeBoard.Episode {
    /// Whether it takes a place on the screen, or is about to.
    fileprivate var isOnScreen: Bool {
        switch stage {
        case .asked, .shown: true
        case .waiting, .due, .seen: false
        }
    }
}
