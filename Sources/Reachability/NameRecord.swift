// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtoneResolver

/// What is known of one watched name, and when it is asked for again. No clock, no timer: the moments are parameters.
///
/// The rule, in the order in which it applies:
/// - An answer from the hosts file holds until that file is changed.
/// - Addresses are asked for again when the shortest time to live is over, but not within ``shortestInterval``. Each
///   answer that changes nothing doubles the interval, up to ``longestInterval``; a change starts anew. So a change of
///   records is noticed after no longer than the name had been the same before, and after an hour at most; and a name
///   that never changes costs one wake-up and two small packets an hour, whatever its time to live.
/// - "There is no such name" is asked again by the same rule, on the time that the zone's authority gives it
///   (RFC 2308).
/// - Where nobody could say, it is asked again after ``firstRetry``, doubled up to ``longestRetry``.
///
/// What changes the answer most often, another network or other name servers, is an event and waits for none of these.
/// Nor does a connection: it resolves anew with each dial, and what it is told is taken down here as well.
struct NameRecord {
    /// Load balancers give addresses a few seconds; following them would keep a machine awake for nothing, since the
    /// verdict is on the way to the address and not on the server behind it.
    static let shortestInterval = Duration.seconds(60)
    /// A day, as many zones have it, is too long to be wrong about.
    static let longestInterval = Duration.seconds(3600)
    /// A server that was just restarted, or a lease whose name server arrived a moment after its address, is there
    /// within a second or two.
    static let firstRetry = Duration.seconds(1)
    /// Only for a server that came back without any event.
    static let longestRetry = Duration.seconds(300)

    private var families: [IPAddress.Family: Result<Resolution, ResolutionError>] = [:]
    private let shortest: Duration
    private var interval: Duration
    private var retry = firstRetry
    /// What the last round of questions left, to see what the next one changes.
    private var settled: Set<IPAddress>?

    /// What is known of the name now: its addresses, or why it has none. `nil` while the first answer is still to come.
    private(set) var answer: Result<Resolution, ResolutionError>?

    /// A name of which nothing is known yet.
    ///
    /// - Parameter shortest: another ``shortestInterval``, for a test that cannot wait.
    init(shortest: Duration = shortestInterval) {
        self.shortest = shortest
        interval = shortest
    }

    /// Takes an answer for one family.
    ///
    /// Addresses that were good a moment ago are better than none: a verdict on them is one on the way there. So they
    /// stay where nobody can say any more what the name is, and go when somebody says that it is none.
    ///
    /// - Returns: whether the name stands for other addresses than before, or for some at last, or for none any more;
    ///   or that it stands for none is said by somebody now, and was not, or the other way round.
    mutating func take(_ answer: Result<Resolution, ResolutionError>, for family: IPAddress.Family) -> Bool {
        if case .failure(let error) = answer, !error.isFinal, case .success = families[family] { return false }
        families[family] = answer
        let found = [IPAddress.Family.v6, .v4].compactMap { try? families[$0]?.get() }
        let earlier = self.answer
        if let first = found.first {
            self.answer = .success(
                Resolution(
                    addresses: found.flatMap(\.addresses), expires: found.compactMap(\.expires).min(),
                    source: first.source))
        } else if families.count == 2, let error = ResolutionError.mostHopeful(of: errors) {
            self.answer = .failure(error)
        }
        return (self.answer == nil) != (earlier == nil) || addresses(in: self.answer) != addresses(in: earlier)
            || isFinal(self.answer) != isFinal(earlier)
    }

    /// Nobody who wanted to know was allowed to ask; now somebody is.
    mutating func forgetHeldBack() {
        guard case .failure(.heldBack)? = answer else { return }
        self = NameRecord(shortest: shortest)
    }

    /// All answers of a round of questions are in: when to ask again, on the clock of `now`; `nil` for never.
    mutating func finishRound(now: Duration) -> Duration? {
        let present = addresses(in: answer)
        defer { settled = present }
        switch answer {
        case nil: return nil
        case .success(let resolution):
            guard resolution.source == .nameServer else { return nil }
            return next(after: resolution.expires, isUnchanged: present == settled, now: now)
        case .failure(let error):
            if error.kind == .malformed { return nil }
            if error.isFinal { return next(after: error.expires, isUnchanged: present == settled, now: now) }
            defer { retry = min(retry * 2, Self.longestRetry) }
            return now + retry
        }
    }

    /// The network is another: what was learnt about the name's steadiness is void.
    mutating func networkChanged() {
        interval = shortest
        retry = Self.firstRetry
        settled = nil
    }

    private mutating func next(after expires: Duration?, isUnchanged: Bool, now: Duration) -> Duration {
        retry = Self.firstRetry
        interval = isUnchanged ? min(interval * 2, Self.longestInterval) : shortest
        return min(max(expires ?? now, now + interval), now + Self.longestInterval)
    }

    private var errors: [ResolutionError] {
        families.values.compactMap { if case .failure(let error) = $0 { error } else { nil } }
    }

    private func isFinal(_ answer: Result<Resolution, ResolutionError>?) -> Bool {
        guard case .failure(let error) = answer else { return false }
        return error.isFinal
    }

    /// The addresses, whatever their order: servers rotate it to spread the load, which is no news.
    private func addresses(in answer: Result<Resolution, ResolutionError>?) -> Set<IPAddress> {
        Set((try? answer?.get().addresses) ?? [])
    }
}
