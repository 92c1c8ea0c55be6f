// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// The attempts of one dial: which address is tried when, side by side with which others (RFC 8305, "Happy Eyeballs").
///
/// A dial has one or several *services*, the hosts that stand for the remote in the order of preference: the host of
/// the URL, or the targets of its SRV record. Each is asked for both families; what comes is tried as it comes:
///
/// - IPv6's answer is acted on at once, IPv4's after ``resolutionDelay`` unless IPv6's came meanwhile.
/// - The addresses of one service are sorted by RFC 6724, and families take turns.
/// - A new attempt begins ``attemptDelay`` after the last, or at once when one fails; the earlier ones go on.
/// - An end that stays silent is tried by another uplink as well, where there is one.
/// - The next service's turn comes when the addresses of the one before have all been tried. One whose names are still
///   being asked for holds the others up for no longer than ``attemptDelay``.
///
/// The first attempt that stands wins: connected, and secured where the remote has TLS. While one is being secured no
/// other is begun; the line is a good one, and the server has its hands full. The owner closes the losers.
struct Race {
    /// How long an IPv4 answer waits for IPv6's (RFC 8305, section 8).
    static let resolutionDelay = Duration.milliseconds(50)
    /// How long an attempt has the line for itself (RFC 8305, section 8: between 100 ms and 2 s).
    static let attemptDelay = Duration.milliseconds(250)
    /// The most addresses of one dial. A zone can hold hundreds of addresses; eight cover both families of a service
    /// with four hosts, and bound the sockets that a thousand connections open in the same second.
    static let limit = 8

    /// One socket on its way.
    struct Attempt: Hashable {
        let epoch: UInt64
        let remote: Endpoint
        /// The address that the socket was asked to bind to.
        let source: IPAddress?
        /// When it began.
        let began: Duration
        /// When it is given up.
        var deadline: Duration
        /// By which other uplink than the one that the kernel chooses; `nil` for that one.
        var detour: Boxed<Detour>?
        /// The socket's own end, once it is connected and being secured.
        var local: Endpoint?
        /// When it was connected, if it is being secured.
        var securingSince: Duration?

        /// Whether it has had no answer for so long. A handshake is given ``Dial/silencePatience`` at the least, since
        /// a server computes for it, but no more than half of the time that it has.
        func isSilent(for patience: Duration, at now: Duration) -> Bool { now >= silence(after: patience) }

        /// When it will have had no answer for so long.
        func silence(after patience: Duration) -> Duration {
            guard let securingSince else { return began + patience }
            return securingSince + min(max(patience, Dial.silencePatience), (deadline - securingSince) / 2)
        }
    }

    /// An attempt to begin.
    struct Start: Hashable {
        let remote: Endpoint
        let source: IPAddress?
        var detour: Boxed<Detour>?
    }

    /// What to do now.
    enum Step: Hashable {
        /// Begin an attempt, and ask again.
        case start(Start)
        /// Nothing before this instant, unless an answer comes or an attempt ends; `nil` for no instant.
        case wait(until: Duration?)
        /// Everything was tried, and failed.
        case over
    }

    /// What is known of one service.
    private struct Service {
        let port: UInt16
        /// Addresses not tried yet, the best first.
        var candidates: [DestinationOrder.Candidate] = []
        /// Families whose answer is still to come.
        var pending: Set<IPAddress.Family>
        /// When the first answer that brought addresses came.
        var answeredAt: Duration?
    }

    private var services: [Service] = []
    private let began: Duration
    private var lastStart: Duration?
    private var lastFamily: IPAddress.Family?
    private var tried: Set<Endpoint> = []
    /// Ends that stay silent, by another uplink each.
    private var detours: [Start] = []
    /// Whether an end was silent on the way that the kernel chooses.
    private(set) var hasSilence = false
    /// The attempts that are under way, the oldest first.
    private(set) var running: [Attempt] = []
    /// An address that no name server has confirmed.
    private var unconfirmed: (remote: Endpoint, failure: FlowFailure?)?
    /// The most telling failure so far. What another uplink failed of counts only where nothing else did: its network
    /// may answer in the remote's name.
    var miss: Miss? { ownMiss ?? detourMiss }
    private var ownMiss: Miss?
    private var detourMiss: Miss?

    /// An address that failed.
    struct Miss: Hashable {
        let failure: FlowFailure
        let remote: Endpoint
    }

    /// A race to nothing yet.
    init(now: Duration) { began = now }

    /// A service on this port, which comes after those before it, and whose addresses are being asked for.
    ///
    /// - Returns: its number.
    mutating func expect(port: UInt16) -> Int {
        services.append(Service(port: port, pending: [.v4, .v6]))
        return services.count - 1
    }

    /// An address that needs no asking, behind the services before it.
    ///
    /// - Parameter isConfirmed: whether it is the remote's for certain. If not, what it fails of counts only once an
    ///   answer brings it, too.
    mutating func add(
        _ address: DestinationOrder.Candidate, port: UInt16, isConfirmed: Bool = true, now: Duration
    ) {
        if !isConfirmed { unconfirmed = (Endpoint(address: address.destination, port: port), nil) }
        services.append(Service(port: port, candidates: [address], pending: [], answeredAt: now))
    }

    /// An end that was tried and stays silent, by another uplink: before those that were not tried.
    mutating func add(_ detour: Detour, to remote: Endpoint) {
        detours.append(Start(remote: remote, source: detour.source, detour: .value(detour)))
    }

    /// How many addresses wait to be tried.
    var waitingCount: Int { services.reduce(0) { $0 + $1.candidates.count } }

    // MARK: - What happened

    /// The addresses of one family came, or none did.
    mutating func answered(
        _ family: IPAddress.Family, of service: Int, with candidates: [DestinationOrder.Candidate], now: Duration
    ) {
        guard services.indices.contains(service), services[service].pending.remove(family) != nil else { return }
        guard !candidates.isEmpty else { return }
        if let known = unconfirmed, known.remote.port == services[service].port,
            candidates.contains(where: { $0.destination == known.remote.address })
        {
            if let failure = known.failure { note(failure, of: known.remote) }
            unconfirmed = nil
        }
        // Sorted once, and no more of a family than can be tried: a zone's owner decides how many there are.
        let news = DestinationOrder.sorted(candidates).prefix(Self.limit)
        services[service].candidates = DestinationOrder.sorted(services[service].candidates + news)
        services[service].answeredAt = services[service].answeredAt ?? now
    }

    /// There is no such name, or it has other addresses, by a name server's word: what none has confirmed is not tried
    /// any more.
    mutating func dropUnconfirmed() {
        guard let remote = unconfirmed?.remote else { return }
        for index in services.indices where services[index].port == remote.port {
            services[index].candidates.removeAll { $0.destination == remote.address }
        }
    }

    /// An attempt began, by the answer of ``step(now:)``.
    mutating func began(_ attempt: Attempt) {
        running.append(attempt)
        lastStart = attempt.began
    }

    /// An attempt is connected, and its handshake has until `deadline`.
    ///
    /// - Returns: whether that is news of an attempt of this race.
    mutating func securing(_ epoch: UInt64, at local: Endpoint, until deadline: Duration, now: Duration) -> Bool {
        guard let position = running.firstIndex(where: { $0.epoch == epoch }), running[position].local == nil else {
            return false
        }
        (running[position].local, running[position].deadline) = (local, deadline)
        running[position].securingSince = now
        // It is not silent.
        detours.removeAll { $0.remote == running[position].remote }
        return true
    }

    /// An attempt failed. Of several failures the first that the remote's side caused is kept, else the last:
    /// "refused" tells more than "no route" for the family that this network does not have.
    ///
    /// - Returns: the attempt; `nil` when it is none of this race's.
    mutating func failed(_ epoch: UInt64, _ failure: FlowFailure) -> Attempt? {
        guard let position = running.firstIndex(where: { $0.epoch == epoch }) else { return nil }
        let attempt = running.remove(at: position)
        if attempt.detour == nil, failure.isSilence { hasSilence = true }
        if unconfirmed?.remote == attempt.remote {
            if attempt.detour == nil { unconfirmed?.failure = failure }
        } else if attempt.detour != nil {
            if detourMiss.map(\.failure.isLocal) ?? true {
                detourMiss = Miss(failure: failure, remote: attempt.remote)
            }
        } else {
            note(failure, of: attempt.remote)
        }
        // Nothing to spare for one that is over (section 5).
        lastStart = nil
        return attempt
    }

    private mutating func note(_ failure: FlowFailure, of remote: Endpoint) {
        if ownMiss.map(\.failure.isLocal) ?? true { ownMiss = Miss(failure: failure, remote: remote) }
    }

    /// The first attempt whose time is up.
    func overdue(now: Duration) -> Attempt? {
        running.first { $0.deadline <= now }
    }

    // MARK: - What to do

    /// What to do now, for as long as the answer is `start`.
    mutating func step(now: Duration) -> Step {
        if tried.count >= Self.limit, detours.isEmpty { return running.isEmpty ? .over : .wait(until: nextDeadline) }
        // Nobody waits for their turn, or somebody has all but won: but for one whose handshake has fallen silent.
        let isIdle = detours.isEmpty && services.allSatisfy { $0.candidates.isEmpty }
        let detour = detours.firstIndex { detour in
            !isSecuring || running.contains { $0.remote == detour.remote && $0.detour == nil && $0.local != nil }
        }
        if (isSecuring && detour == nil) || (isIdle && !running.isEmpty) { return .wait(until: nextDeadline) }
        if let lastStart, now < lastStart + Self.attemptDelay, !running.isEmpty {
            return .wait(until: soonest(lastStart + Self.attemptDelay))
        }
        if let detour { return .start(detours.remove(at: detour)) }
        var earliest: Duration?
        for index in services.indices {
            if let due = readiness(of: services[index]) {
                if due > now {
                    earliest = soonest(earliest, due)
                } else if let start = take(from: index) {
                    return .start(start)
                }
            }
            // The services behind it wait for its names, but not for long.
            guard isHeldUp(services[index]), index + 1 < services.count else { continue }
            let patience = began + Self.attemptDelay
            if now < patience { return .wait(until: soonest(earliest, patience)) }
        }
        if running.isEmpty, earliest == nil, services.allSatisfy(\.pending.isEmpty) { return .over }
        return .wait(until: soonest(earliest))
    }

    /// Whether nothing of a service is known, but may be.
    private func isHeldUp(_ service: Service) -> Bool {
        service.answeredAt == nil && !service.pending.isEmpty
    }

    /// When the untried addresses of a service may be tried; `nil` where there are none.
    private func readiness(of service: Service) -> Duration? {
        guard let answeredAt = service.answeredAt, !service.candidates.isEmpty else { return nil }
        let waitsForIPv6 = service.pending.contains(.v6) && tried.isEmpty
        return waitsForIPv6 ? answeredAt + Self.resolutionDelay : answeredAt
    }

    /// Takes the best untried address of a service, of the other family than the last one tried if it has any.
    private mutating func take(from index: Int) -> Start? {
        while !services[index].candidates.isEmpty {
            let position = services[index].candidates.firstIndex {
                $0.source != nil && $0.destination.family != lastFamily
            }
            let chosen = services[index].candidates.remove(at: position ?? 0)
            let remote = Endpoint(address: chosen.destination, port: services[index].port)
            guard tried.insert(remote).inserted else { continue }
            lastFamily = chosen.destination.family
            return Start(remote: remote, source: chosen.source)
        }
        return nil
    }

    /// Whether the handshake of an attempt runs that is the remote's for certain.
    var isSecuring: Bool { running.contains { $0.local != nil && $0.remote != unconfirmed?.remote } }

    /// Whether an address that comes now would be tried.
    var hasPlaces: Bool { tried.count < Self.limit }

    /// Whether an attempt is bound to `source`, or one that is still to come would be.
    func uses(_ source: IPAddress) -> Bool {
        running.contains { ($0.local?.address ?? $0.source) == source }
            || detours.contains { $0.source == source }
            || services.contains { $0.candidates.contains { $0.source == source } }
    }

    private var nextDeadline: Duration? { running.map(\.deadline).min() }

    private func soonest(_ instants: Duration?...) -> Duration? {
        (instants.compactMap(\.self) + [nextDeadline].compactMap(\.self)).min()
    }
}
