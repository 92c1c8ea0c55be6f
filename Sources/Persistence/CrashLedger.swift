// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform

/// For whom processes of the agent crashed, and who is refused for it: one user whose messages end the agent again and
/// again must not end it for all.
///
/// It decides and does nothing; the time is a parameter.
package struct CrashLedger: Hashable {
    /// As many crashes as may happen for one user, or one connection, before it is refused. Two may be chance: what a
    /// client sends twice may have met a state that was wrong already. The third process began with a state of which
    /// nothing is left but what is written down.
    static let mostCrashes = 3
    /// How long a user is refused, and how long a crash counts towards the next. With it, one user ends the agent
    /// eighteen times in an hour at most, where each start costs the others a second at most.
    static let refusalTime = Duration.seconds(600)

    /// Somebody for whom a process crashed.
    package enum Subject: Hashable {
        case user(UInt32)
        case connection(String, owner: UInt32)
    }

    package private(set) var entries: [BlackBox.Entry]

    /// What is remembered.
    init(_ entries: [BlackBox.Entry] = []) { self.entries = entries }

    /// Takes note of how a process ended.
    ///
    /// - Returns: for whom it did; `nil` where it was at nothing that anybody asked for.
    mutating func note(_ crash: BlackBox.Crash, now: Duration) -> Subject? {
        entries.removeAll { $0.latest + Self.refusalTime <= now || $0.latest > now }
        guard let work = crash.work, let subject = Subject(work) else { return nil }
        var count = 1
        if let index = entries.firstIndex(where: { Subject($0.work) == subject }) {
            let before = entries.remove(at: index)
            // Without a noted signal it was killed from outside: by an administrator, or by the kernel for its memory.
            // That the same message was being answered each time is no accident.
            let isAgain = crash.signal != nil || crash.digest != 0 && crash.digest == before.digest
            if isAgain { count += before.count }
        }
        entries.insert(.init(work, digest: crash.digest, count: count, latest: now), at: 0)
        // The oldest ones are forgotten.
        entries = Array(entries.prefix(BlackBox.mostEntries))
        if case .connection(_, let owner) = subject, count >= Self.mostCrashes {
            // Who has a server do it by one connection after the other is no better than who does it.
            _ = note(.init(.call(method: "", user: owner), digest: 0, signal: crash.signal), now: now)
        }
        return subject
    }

    /// The connections that are left alone, and for how much longer: what their servers send ends processes.
    package func connectionsLeftAlone(now: Duration) -> [(key: ConnectionKey, rest: Duration)] {
        entries.compactMap { entry in
            guard let subject = Subject(entry.work), case .connection(let name, let owner) = subject,
                let rest = refusal(of: subject, now: now)
            else { return nil }
            return (ConnectionKey(name, of: owner), rest)
        }
    }

    /// How much longer somebody is refused; `nil` where that is not the case. Root never is.
    package func refusal(of subject: Subject, now: Duration) -> Duration? {
        if subject == .user(0) { return nil }
        guard let entry = entries.first(where: { Subject($0.work) == subject }), entry.count >= Self.mostCrashes else {
            return nil
        }
        let end = entry.latest + Self.refusalTime
        return end > now ? end - now : nil
    }
}

extension CrashLedger.Subject {
    /// Who had that done; `nil` for what is root's.
    package init?(_ work: BlackBox.Work) {
        switch work {
        case .call(_, let user): self = .user(user)
        case .bytes(let connection, let user): self = .connection(connection, owner: user)
        case .configuration: return nil
        }
    }
}
