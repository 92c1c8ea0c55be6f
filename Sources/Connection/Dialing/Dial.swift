// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// One dial: from the remote's name to a socket that stands, or to what it failed of.
///
/// It asks for the service's hosts where the remote's scheme has a record for that, for the addresses of each host, and
/// leaves to its ``Race`` which of them is tried when. Whoever has it tells it what happens, runs ``goOn(_:_:)`` after
/// that and when that says, and ends it with ``close(_:but:_:)``, also when it has failed.
struct Dial {
    /// How long a question may take: one round over the three servers that `resolv.conf` can name, at its default of
    /// 5 s.
    static let resolutionTimeout = Duration.seconds(15)

    /// How long the rules of a domain (NAPTR) are waited for when the hosts of its service are known already. Most
    /// domains have none, and a server that swallows the question must not cost more than it does for addresses.
    static let pointerPatience = Duration.seconds(1)

    /// How long the name servers have for a first address until the one that answered last is tried beside the
    /// questions (RFC 8767, section 5: how long a resolver waits before it answers with what it last knew).
    static let knownPatience = Duration.milliseconds(1800)

    /// How long an attempt waits for an answer before the dial also tries another uplink. The kernel repeats a SYN
    /// after 1 and 3 s (RFC 6298, section 2), and a network that works rarely loses the first two.
    static let silencePatience = Duration.milliseconds(3500)

    /// The most hosts of a service that one dial asks for. Two questions each; the race tries eight addresses in all.
    static let mostHosts = 4

    /// Where a dial stands.
    enum Progress {
        /// Something is on its way. When there is something to do at the latest.
        case goesOn(until: Duration)
        /// It failed as a whole.
        case failed(StatusReason)
    }

    /// What the dial is made by.
    struct Setting {
        let policy: ConnectionPolicy
        /// What its sockets are made with.
        let options: SocketOptions
        let path: Path
        /// Where a server of the name was reached not long ago.
        let known: Endpoint?
        /// How long an attempt waits for an answer before the dial also tries another uplink; `nil` if it tries none.
        let patience: Duration?
    }

    /// The numbers of queries and sockets, none of which comes twice.
    struct Numbers {
        var query: UInt64 = 0
        var epoch: UInt64 = 0
    }

    /// A search for another uplink to an end.
    private struct Search {
        /// Whether it is for a connect, and not for a handshake.
        let isForConnect: Bool
        var isAnswered = false
    }

    private enum Topic: Hashable {
        case services
        case pointers
        case addresses(host: Int, IPAddress.Family)
    }

    private struct Host {
        let name: String
        let port: UInt16
    }

    private let setting: Setting
    private let began: Duration
    /// Where a server of the name was reached not long ago, until that is tried.
    private var known: Endpoint?
    /// When the newest question was asked: each stage has its time.
    private var asked: Duration
    private var topics: [UInt64: Topic] = [:]
    private var race: Race?
    /// The hosts by the SRV record, until they are asked for their addresses.
    private var hosts: [Host]?
    /// When the hosts were known.
    private var hostsKnownAt: Duration?
    private var isServiceRefused = false
    /// Whether there is an address by the word of a name server, or of the remote itself.
    private var hasAddresses = false
    private var misses: [ResolutionFailure] = []
    /// The ends for which another uplink was looked for.
    private var detours: [Endpoint: Search] = [:]
    /// How long an attempt waits for an answer before the dial also tries another uplink; `nil` if it tries none.
    private var patience: Duration?
    /// What its owner's timer is set for; `nil` while it is not set.
    var wake: Duration?

    /// Begins with what can be asked or tried at once. ``goOn(_:_:)`` does the rest.
    init(_ setting: Setting, _ numbers: inout Numbers, _ turn: inout Turn<some RandomNumberGenerator>) {
        self.setting = setting
        (began, asked, known, patience) = (turn.now, turn.now, setting.known, setting.patience)
        let remote = setting.policy.remote
        switch remote.host {
        case .address(let address):
            hasAddresses = true
            race = Race(now: turn.now)
            race?.add(DestinationOrder.Candidate(address, by: setting.path), port: remote.port, now: turn.now)
        case .name(let name):
            if let serviceName = remote.serviceName {
                if remote.scheme.namingService != nil { ask(.pointers(name), .pointers, &numbers, &turn) }
                ask(.services(serviceName), .services, &numbers, &turn)
            } else {
                ask(for: [Host(name: name, port: remote.port)], &numbers, &turn)
            }
        }
    }

    /// It was to show that a way works, and is the dial for the next flow now: it tries other uplinks as that does.
    mutating func becomeMain(patience: Duration?) { self.patience = patience }

    // MARK: - What can be asked

    /// What its sockets are made with.
    var options: SocketOptions { setting.options }

    /// The attempts that are under way, the oldest first.
    var attempts: [Race.Attempt] { race?.running ?? [] }

    /// The attempt that shows: the one that is being secured, or the newest.
    var foremost: Race.Attempt? { attempts.first { $0.local != nil } ?? attempts.last }

    /// Whether an attempt is bound to `source`, or may come to be.
    func uses(_ source: IPAddress) -> Bool { race?.uses(source) ?? false }

    // MARK: - What happens

    /// An answer came.
    ///
    /// - Returns: whether it is one to this dial.
    mutating func answered(
        _ query: UInt64, _ answer: NameAnswer, _ numbers: inout Numbers,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        guard let topic = topics.removeValue(forKey: query) else { return false }
        switch (topic, answer) {
        case (.addresses(let host, let family), .addresses(let candidates)):
            let usable = candidates.filter { $0.destination.family == family }
            if usable.isEmpty { misses.append(.noAddress) } else { hasAddresses = true }
            race?.answered(family, of: host, with: usable, now: turn.now)
            // The address that answered last is tried where there is no other.
            if hasAddresses { race?.dropUnconfirmed() }
        case (.services, .services(let records)):
            take(records, &turn)
        case (.pointers, .pointers(let rules)):
            follow(rules, &numbers, &turn)
        case (.addresses, _), (.services, _), (.pointers, _):
            // An answer to something else than was asked is none.
            failed(topic, .temporary, &turn)
        }
        return true
    }

    /// A question failed.
    ///
    /// - Returns: whether it is one of this dial's.
    mutating func failed(
        _ query: UInt64, _ failure: ResolutionFailure, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Bool {
        guard let topic = topics.removeValue(forKey: query) else { return false }
        failed(topic, failure, &turn)
        return true
    }

    /// An attempt is connected and its handshake began. That has as long as the connect had: a few round trips more,
    /// and the server's arithmetic.
    ///
    /// - Returns: whether that is news of one of this dial's.
    mutating func handshakeBegan(_ epoch: UInt64, _ local: Endpoint, now: Duration) -> Bool {
        race?.securing(epoch, at: local, until: now + setting.policy.connectTimeout, now: now) ?? false
    }

    /// An attempt failed; its socket is closed.
    ///
    /// - Returns: the attempt, if it is one of this dial's.
    mutating func attemptFailed(
        _ epoch: UInt64, _ failure: FlowFailure, closing: CloseReason,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Race.Attempt? {
        guard let attempt = race?.failed(epoch, failure) else { return nil }
        turn.perform(.closeSocket(epoch: epoch, closing, .dropped))
        return attempt
    }

    /// The attempts whose time is up fail.
    ///
    /// - Returns: which, and of what.
    mutating func giveUpOverdue(_ turn: inout Turn<some RandomNumberGenerator>) -> [(Race.Attempt, FlowFailure)] {
        var givenUp: [(Race.Attempt, FlowFailure)] = []
        while let attempt = race?.overdue(now: turn.now) {
            let failure = attempt.local == nil ? FlowFailure.timedOut : .tls(.timedOut)
            guard attemptFailed(attempt.epoch, failure, closing: .timedOut, &turn) != nil else { break }
            givenUp.append((attempt, failure))
        }
        return givenUp
    }

    /// There is another uplink to an end, or there is none.
    ///
    /// - Returns: whether that is news for this dial.
    mutating func found(_ detour: Detour?, to remote: Endpoint) -> Bool {
        guard let search = detours[remote], !search.isAnswered else { return false }
        detours[remote]?.isAnswered = true
        // One for a connect that was answered meanwhile is for nothing.
        let isAnswered = attempts.contains { $0.remote == remote && $0.detour == nil && $0.local != nil }
        guard let detour, !(search.isForConnect && isAnswered) else { return false }
        race?.add(detour, to: remote)
        return true
    }

    // MARK: - What to do

    /// Begins the attempts that are due.
    mutating func goOn(
        _ numbers: inout Numbers, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Progress {
        if turn.now >= asked + Self.resolutionTimeout { giveUpQuestions(&turn) }
        settleHosts(&numbers, &turn)
        if isServiceRefused, !awaitsPointers(turn.now) { return .failed(.resolutionFailed(.notOffered)) }
        var patience = asked + Self.resolutionTimeout
        if let due = tryKnown(turn.now) { patience = min(patience, due) }
        if awaitsPointers(turn.now), let hostsKnownAt {
            patience = min(patience, hostsKnownAt + Self.pointerPatience)
        }
        guard var race else { return .goesOn(until: patience) }
        defer { self.race = race }
        while true {
            switch race.step(now: turn.now) {
            case .start(let start):
                race.began(open(start, &numbers, &turn))
            case .wait(let instant):
                // With nothing to ask any more there is an attempt, which has a deadline.
                let next = topics.isEmpty ? instant ?? patience : min(instant ?? patience, patience)
                return .goesOn(until: min(next, lookForDetours(in: race, &turn) ?? next))
            case .over where !topics.isEmpty && race.hasPlaces:
                return .goesOn(until: patience)
            case .over:
                guard let miss = race.miss else { return .failed(.resolutionFailed(nameFailure)) }
                return .failed(.dialFailed(miss.failure, miss.remote))
            }
        }
    }

    /// Gives up everything that is under way, but one attempt.
    mutating func close(
        _ reason: CloseReason, but winner: UInt64? = nil, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        for query in topics.keys.sorted() { turn.perform(.cancelResolution(query: query)) }
        topics = [:]
        for attempt in attempts where attempt.epoch != winner {
            turn.perform(.closeSocket(epoch: attempt.epoch, reason, .dropped))
        }
    }

    private func open(
        _ start: Race.Start, _ numbers: inout Numbers, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Race.Attempt {
        numbers.epoch += 1
        turn.perform(
            .openSocket(
                FlowRequest(
                    epoch: numbers.epoch, remote: start.remote, source: start.source,
                    interfaceIndex: start.detour?.value.interfaceIndex ?? setting.path.interface?.index,
                    isBoundToInterface: start.detour != nil, options: options,
                    tls: setting.policy.tlsRequest)))
        return Race.Attempt(
            epoch: numbers.epoch, remote: start.remote, source: start.source, began: turn.now,
            deadline: turn.now + setting.policy.connectTimeout, detour: start.detour)
    }
}

// MARK: - Other uplinks

extension Dial {
    /// Looks for another uplink to each end that has been silent for long enough.
    ///
    /// - Returns: when that is due for the next one; `nil` where there is none.
    private mutating func lookForDetours(
        in race: Race, _ turn: inout Turn<some RandomNumberGenerator>
    ) -> Duration? {
        guard let patience, let interface = setting.path.interface else { return nil }
        var next: Duration?
        for attempt in race.running where attempt.detour == nil && (attempt.local != nil || !race.isSecuring) {
            let remote = attempt.remote
            // One that was found for a silent connect is dropped when that is answered; the handshake has its own.
            guard detours[remote].map({ attempt.local != nil && $0.isForConnect }) ?? true,
                !race.running.contains(where: { $0.detour != nil && $0.remote == remote }),
                setting.policy.mayBeDialledElsewhere(remote.address)
            else { continue }
            let due = attempt.silence(after: patience)
            if due > turn.now {
                next = min(next ?? due, due)
            } else {
                detours[remote] = Search(isForConnect: attempt.local == nil)
                turn.perform(.findDetour(remote, around: interface.index))
            }
        }
        return next
    }

    /// Whether an attempt over the way that the kernel chooses has failed of silence.
    var hasSilence: Bool { race?.hasSilence ?? false }

    /// Whether an attempt over that way has failed of silence, or has had no answer for so long.
    func isSilent(for patience: Duration, at now: Duration) -> Bool {
        hasSilence || attempts.contains { $0.detour == nil && $0.isSilent(for: patience, at: now) }
    }
}

// MARK: - Names

extension Dial {
    private mutating func ask(
        _ question: NameQuestion, _ topic: Topic, _ numbers: inout Numbers,
        _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        numbers.query += 1
        asked = turn.now
        topics[numbers.query] = topic
        turn.perform(.resolve(query: numbers.query, question))
    }

    /// Asks for the addresses of these hosts, which stand for the remote from now on. IPv6 is asked for first (RFC
    /// 8305, section 3).
    private mutating func ask(
        for hosts: [Host], _ numbers: inout Numbers, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        var race = race ?? Race(now: turn.now)
        for host in hosts {
            let index = race.expect(port: host.port)
            for family in [IPAddress.Family.v6, .v4] {
                ask(.addresses(host.name, family), .addresses(host: index, family), &numbers, &turn)
            }
        }
        self.race = race
    }

    /// Tries the address that answered last, where the name servers have brought none in time or do not answer at all.
    ///
    /// - Returns: when that is due; `nil` where nothing is.
    private mutating func tryKnown(_ now: Duration) -> Duration? {
        guard let end = known, !hasAddresses, !isServiceRefused else { return nil }
        // The word of a name server, that there is no such name, holds.
        if misses.contains(.noSuchName) { return nil }
        let cannotAsk = misses.contains(.temporary) || misses.contains(.heldBack)
        if topics.isEmpty, !cannotAsk { return nil }
        let due = began + Self.knownPatience
        guard topics.isEmpty || now >= due else { return due }
        known = nil
        var race = race ?? Race(now: now)
        // From which source is the kernel's choice: the path's is of the moment in which the dial began.
        race.add(
            DestinationOrder.Candidate(end.address, source: nil), port: end.port, isConfirmed: false, now: now)
        self.race = race
        return nil
    }

    private mutating func take(_ records: [ServiceRecord], _ turn: inout Turn<some RandomNumberGenerator>) {
        let ordered = ServiceRecord.ordered(records, limit: Self.mostHosts, using: &turn.random)
        guard !ordered.isEmpty else {
            // A record whose target is the root, or none at all.
            isServiceRefused = !records.isEmpty
            return hostsKnown(isServiceRefused ? [] : ownHost, turn.now)
        }
        hostsKnown(ordered.map { Host(name: $0.target, port: $0.port) }, turn.now)
    }

    /// A domain's rules may lead to another name than the usual one; then that one is asked, and what the usual one
    /// leads to is no matter any more.
    private mutating func follow(
        _ rules: [NamingAuthorityPointer], _ numbers: inout Numbers, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        let remote = setting.policy.remote
        guard let service = remote.scheme.namingService,
            let name = NamingAuthorityPointer.serviceNames(in: rules, offering: service).first,
            name.lowercased() != remote.serviceName?.lowercased()
        else { return }
        for (query, topic) in topics where topic == .services {
            topics[query] = nil
            turn.perform(.cancelResolution(query: query))
        }
        (hosts, hostsKnownAt, isServiceRefused) = (nil, nil, false)
        ask(.services(name), .services, &numbers, &turn)
    }

    private mutating func failed(
        _ topic: Topic, _ failure: ResolutionFailure, _ turn: inout Turn<some RandomNumberGenerator>
    ) {
        switch topic {
        case .addresses(let host, let family):
            misses.append(failure)
            race?.answered(family, of: host, with: [], now: turn.now)
            if failure == .noSuchName { race?.dropUnconfirmed() }
        case .services:
            // Without a record, and also where none is to be had: the host itself is as good a guess as any.
            hostsKnown(ownHost, turn.now)
        case .pointers:
            break
        }
    }

    private var ownHost: [Host] {
        guard case .name(let name) = setting.policy.remote.host else { return [] }
        return [Host(name: name, port: setting.policy.remote.port)]
    }

    private mutating func hostsKnown(_ hosts: [Host], _ now: Duration) {
        (self.hosts, hostsKnownAt) = (hosts, now)
    }

    /// Whether the domain's rules may still lead elsewhere.
    private func awaitsPointers(_ now: Duration) -> Bool {
        guard let hostsKnownAt, topics.values.contains(.pointers) else { return false }
        return now < hostsKnownAt + Self.pointerPatience
    }

    /// Goes over to the addresses when the hosts are known, and nothing better may be heard of any more.
    private mutating func settleHosts(_ numbers: inout Numbers, _ turn: inout Turn<some RandomNumberGenerator>) {
        guard let hosts, !isServiceRefused, !awaitsPointers(turn.now) else { return }
        self.hosts = nil
        for query in topics.filter({ $0.value == .pointers }).keys {
            topics[query] = nil
            turn.perform(.cancelResolution(query: query))
        }
        ask(for: hosts, &numbers, &turn)
    }

    /// Nobody answers any more: what was asked has failed for now.
    private mutating func giveUpQuestions(_ turn: inout Turn<some RandomNumberGenerator>) {
        for (query, topic) in topics.sorted(by: { $0.key < $1.key }) {
            topics[query] = nil
            turn.perform(.cancelResolution(query: query))
            failed(topic, .temporary, &turn)
        }
    }

    /// What the name as a whole failed of. What may pass weighs more than what does not: half of an answer is none.
    private var nameFailure: ResolutionFailure {
        if misses.contains(.heldBack) { return .heldBack }
        if misses.contains(.temporary) { return .temporary }
        return misses.contains(.noAddress) ? .noAddress : misses.first ?? .noAddress
    }
}
