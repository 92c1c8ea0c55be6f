// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath
package import DialtonePlatform

/// Follows the kernel's network state: a snapshot of links and addresses that is always current, a callback for each
/// change, and answers to route lookups.
///
/// The state lives on ``AgentQueue``. An overrun of the socket's buffer is not an end: what is queued is still read,
/// the snapshot is marked not coherent, everything is read anew, and it is coherent again.
@AgentQueue
package final class KernelMonitor {
    /// The least time between two re-reads after overruns. A storm that overruns an 8 MiB buffer does so again at once;
    /// ten dumps a second bound what that may cost, and the last overrun always gets its re-read.
    private static let rereadInterval = Duration.milliseconds(100)

    /// The longest wait after re-reads that the kernel refused: whatever keeps it from answering, asking ten times a
    /// second for as long as that lasts would be a busy loop.
    private static let longestRereadDelay = Duration.seconds(10)

    /// How often the socket is read as soon as something is in it, before it is read only every now and then. A link
    /// that comes up makes some twenty notices.
    package nonisolated static let readsAtOnce = 32

    /// The pause between two reads in a storm, so at most two hundred a second: to be woken, to read one message and to
    /// go to sleep takes ten times as long as to read one more. Within it, a buffer cut to `net.core.rmem_max` (208
    /// KiB) still holds what a hundred thousand changes a second make.
    package nonisolated static let readPause = Duration.milliseconds(5)

    /// Datagrams read in one turn of the queue. The queue's other work (a flow to be closed for the change just read)
    /// comes in between; the source fires again for the rest.
    package nonisolated static let datagramsPerTurn = 256

    /// The kernel's state as of the last message read.
    package private(set) var snapshot = NetworkSnapshot()

    /// How many routes the kernel was asked for since the start.
    package private(set) var lookupCount = 0

    /// How often the kernel's notices were read since the start, several at a time in a storm.
    package private(set) var readCount = 0

    /// How often the kernel dropped notices since the start, since they came faster than they were read.
    package private(set) var overruns = 0

    private let notices: NetlinkSocket
    private let requests: NetlinkSocket
    private let neighbours: NeighbourWatch
    private let expiries: RouteExpiries
    /// Where what the verdicts rest on is recorded.
    package let recorder: Recorder?
    private var destinations: DestinationIndex?
    private var kinds = InterfaceKinds()
    private var noticesRegistration: Poller.Registration?
    private var neighboursRegistration: Poller.Registration?
    private var lastReread: Duration
    private var rereadDelay = rereadInterval
    private var needsReread = false
    private var rereadTimer: Timers.Timer?
    private var readPacer = TokenBucket(burst: readsAtOnce, refill: readPause, now: BootClock.now())
    private var readTimer: Timers.Timer?
    private var deliver: (@AgentQueue (KernelChange) -> Void)?

    /// Reads the kernel's state through freshly opened sockets.
    ///
    /// - Throws: the kernel's refusal of a dump.
    package init(_ sockets: borrowing KernelSockets) throws(SystemError) {
        notices = sockets.notices
        requests = sockets.requests
        neighbours = NeighbourWatch(notices: sockets.neighbours, requests: sockets.requests)
        expiries = RouteExpiries(notices: sockets.notices, requests: sockets.requests)
        recorder = sockets.recorder
        kinds.recorder = recorder
        snapshot = try KernelDump(on: requests).read(kinds: &kinds)
        recorder?.noteReread(isCoherent: snapshot.isCoherent)
        snapshot.loseTrackOfRoutes()
        lastReread = BootClock.now()
    }

    isolated deinit { stop() }

    /// Begins to follow the kernel.
    ///
    /// - Parameter handler: is called with each change, in the turn of the queue that read it, when it is in the
    ///   snapshot.
    /// - Throws: `ENOSPC` at the user's limit of watched descriptors, and what ``Poller`` has to say the first time.
    package func start(_ handler: @escaping @AgentQueue (KernelChange) -> Void) throws(SystemError) {
        // A mistake of the program that holds it, once at its start.
        precondition(noticesRegistration == nil, "a kernel monitor is started once")
        deliver = handler
        noticesRegistration = try Poller.shared.register(notices.descriptor, .readable) { [weak self] _ in
            self?.noticesAreReadable()
        }
        neighboursRegistration = try Poller.shared.register(neighbours.notices.descriptor, .readable) { [weak self] _ in
            _ = self?.readNeighbours()
        }
        expiries.onChange = { [weak self] prefixes in
            self?.deliver?(KernelChange(.routes, routes: .inside(prefixes)))
        }
        if !snapshot.isCoherent {
            needsReread = true
            _ = markIncoherent()
        }
    }

    /// Ends the watch. No callback is begun after this; one that waits on another queue may still run.
    package func stop() {
        noticesRegistration?.cancel()
        neighboursRegistration?.cancel()
        rereadTimer?.cancel()
        readTimer?.cancel()
        expiries.stop()
        deliver = nil
    }

    /// The kernel's answers to `queries`, in their order, as of now. Costs about 10 µs each.
    ///
    /// - Throws: when the kernel cannot be asked; a refusal of one query is its answer, not an error.
    package func routes(for queries: [PreparedQuery]) throws(SystemError) -> [RouteAnswer] {
        lookupCount += queries.count
        snapshot.prepareForVerdicts()
        return try RouteLookup(on: requests).answers(to: queries)
    }

    /// Reports a change of routes from now on only where one of `destinations` may be concerned; all with `nil`.
    package func watch(destinations: DestinationIndex?) {
        self.destinations = destinations
    }

    /// Takes in what the kernel has told, now and not when the queue comes to it.
    package func catchUp() {
        readNotices()
        readNeighbours()
    }

    /// Takes in what the kernel has told, for a caller that is in the middle of a verdict. The change is told in a turn
    /// of its own.
    ///
    /// - Returns: whether there was something.
    package func readAhead() -> Bool {
        let before = snapshot.generation
        let later: @AgentQueue (KernelChange) -> Void = { [weak self] change in
            AgentQueue.async { self?.tell(change) }
        }
        let count = readNotices(tellingBy: later).count + readNeighbours(tellingBy: later).count
        return count > 0 || snapshot.generation != before
    }

    /// Counts it as a change of routes when the lifetime of the one ends that `query` goes by, whenever it was made. Of
    /// other routes that is so if they were made under the eyes of this monitor.
    package func followLifetime(of query: RouteQuery) {
        expiries.follow(query)
    }

    /// Takes the user's word on what interfaces cost.
    package func setCosts(_ costs: CostPolicy) {
        snapshot.costs = costs
    }

    /// Counts a change that the kernel tells nothing of.
    package func countChange() {
        snapshot.generation += 1
    }

    /// Watches whether `gateways` answer, and no others. What is known of new ones is in the snapshot at once.
    package func watch(gateways: Set<NetworkSnapshot.Neighbour>) throws(SystemError) {
        guard gateways != neighbours.watched else { return }
        for event in try neighbours.watch(gateways) { _ = snapshot.apply(event) }
        let forgotten = snapshot.openNeighbours.subtracting(gateways)
        for gateway in forgotten { _ = snapshot.apply(.neighbourChanged(gateway, isFailed: false)) }
        // The filter so far dropped the notice of one that has come back since it was asked about, so it is asked about
        // again. Those that were open before are not: their notice comes, and is told to all who wait for it.
        for gateway in try neighbours.update(open: snapshot.openNeighbours) { _ = verifyFailure(of: gateway) }
    }

    /// Listens for the return of IPv6 routers that do not answer: the kernel goes round them without a word, and comes
    /// back to them. To be called before IPv6 routes are asked for.
    package func watchSilentRouters() {
        let change = returned(neighbours.watchSilentRouters())
        // In a turn of its own: who is about to ask is in the middle of it.
        if !change.isEmpty { AgentQueue.async { [weak self] in self?.deliver?(change) } }
    }

    private func returned(_ routers: Set<NetworkSnapshot.Neighbour>) -> KernelChange {
        var change = KernelChange()
        for router in routers { change.merge(snapshot.noteReturn(of: router)) }
        return change
    }

    /// The link-layer address of a neighbour; `nil` for one that the kernel has none of. Two system calls.
    package func linkAddress(of neighbour: NetworkSnapshot.Neighbour) -> [UInt8]? {
        neighbours.linkAddress(of: neighbour)
    }

    /// Has the kernel ask for a neighbour whether it is there.
    ///
    /// - Returns: whether it does; it takes `CAP_NET_ADMIN`.
    package func solicit(_ neighbour: NetworkSnapshot.Neighbour) -> Bool {
        neighbours.solicit(neighbour)
    }

    /// Takes back the failure of a gateway that the kernel was asked to ask for, if it needs no asking: on a link
    /// without address resolution the entry is good at once, and nothing is told of that.
    package func recheckFailure(of gateway: NetworkSnapshot.Neighbour) -> KernelChange {
        guard snapshot.failedNeighbours.contains(gateway),
            case .neighbourChanged(_, isFailed: false)? = try? neighbours.state(of: gateway)
        else { return KernelChange() }
        return doubtFailure(of: gateway)
    }

    /// Takes a gateway's failure back, since nobody can find out whether it lasts; returns what that changes.
    package func doubtFailure(of gateway: NetworkSnapshot.Neighbour) -> KernelChange {
        recorder?.noteDoubt(of: gateway)
        let change = snapshot.apply(.neighbourChanged(gateway, isFailed: false))
        _ = try? neighbours.update(open: snapshot.openNeighbours)
        return change
    }

    /// Awaits anew whether a failed gateway answers, which was asked for just now.
    package func awaitAnew(_ gateway: NetworkSnapshot.Neighbour) { snapshot.doubt(gateway) }

    /// Ends the wait for a gateway of which nothing came to be known; returns what that changes.
    package func stopAwaiting(_ gateway: NetworkSnapshot.Neighbour) -> KernelChange {
        let change = snapshot.stopAwaiting(gateway)
        _ = try? neighbours.update(open: snapshot.openNeighbours)
        return change
    }

    /// Reads everything anew, for those who have reason to doubt what is known: after a suspend, say. What differs is
    /// reported like any change, before this returns.
    package func refresh() {
        needsReread = true
        lastReread = BootClock.now() - rereadDelay
        readNotices()
    }

    private func noticesAreReadable() {
        let read = readNotices()
        // With more to read than a turn may take there is no need to wait for it.
        guard read.isEmpty, readPacer.take(now: BootClock.now()) != nil else { return }
        // A storm: nothing is gained by a wake-up for each message.
        noticesRegistration?.update([])
        readLater()
    }

    private func readLater() {
        readTimer = Timers.shared.schedule(after: Self.readPause) { [weak self] in
            guard let self else { return }
            let read = readNotices()
            // Until there is nothing to read. What comes then is news again, and read at once.
            if read.isEmpty, read.count > 0 { readLater() } else { noticesRegistration?.update(.readable) }
        }
    }

    /// Reads what is queued, applies it and tells of the change, by `tell` where that is given.
    @discardableResult
    private func readNotices(tellingBy tell: (@AgentQueue (KernelChange) -> Void)? = nil) -> Drained {
        readCount += 1
        var change = KernelChange()
        let end = drain(notices) { message in
            guard let destinations, let prefix = message.routePrefix, !destinations.touches(prefix) else {
                if let event = KernelEvent(message, kinds: &kinds) { change.merge(snapshot.apply(event)) }
                expiries.note(message)
                return
            }
            // Most of a router's notices end here, before anything is made of them.
            snapshot.noteRoute(to: prefix, through: message.routeLinks)
        }
        let returned = expiries.takeReturns()
        if !returned.isEmpty { change.merge(KernelChange(.routes, routes: .inside(returned))) }
        if end.lostSome { needsReread = true }
        // Not before the queue is empty: what is still in it is older than the re-read and would be laid over it, and
        // the message that took it back may be among the lost.
        if needsReread {
            if end.isEmpty, lastReread + rereadDelay <= BootClock.now() {
                change.merge(reread())
            } else {
                change.merge(markIncoherent())
            }
        }
        if !change.isEmpty { (tell ?? self.tell)(change) }
        return end
    }

    private func tell(_ told: KernelChange) {
        var change = told
        // One that went and came back meanwhile is there: its flows go on.
        if !change.lostAddresses.isEmpty {
            change.lostAddresses = change.lostAddresses.filter { !snapshot.hasUsable($0) }
        }
        if !change.isEmpty { deliver?(change) }
    }

    @discardableResult
    private func readNeighbours(tellingBy tell: (@AgentQueue (KernelChange) -> Void)? = nil) -> Drained {
        var failed = snapshot.failedNeighbours
        var change = KernelChange()
        let end = drain(neighbours.notices) { message in
            guard let event = KernelEvent(message, kinds: &kinds) else { return }
            if let router = neighbours.returnedRouter(by: event) { change.merge(snapshot.noteReturn(of: router)) }
            guard neighbours.concerns(event) else { return }
            switch event {
            // The kernel tells of a removed entry as of a failed one first (`neigh_delete` in net/core/neighbour.c). By
            // the time that both are read it may ask for the neighbour again, and the entry says no more than that.
            case .neighbourForgotten(let gateway) where !failed.contains(gateway):
                return change.merge(doubtFailure(of: gateway))
            case .neighbourChanged(let gateway, isFailed: false): failed.remove(gateway)
            default: break
            }
            change.merge(snapshot.apply(event))
        }
        if end.lostSome { change.merge(rereadNeighbours()) }
        // All that can be refused is the membership, which there is by now.
        _ = try? neighbours.update(open: snapshot.openNeighbours)
        for gateway in snapshot.failedNeighbours.subtracting(failed) { change.merge(verifyFailure(of: gateway)) }
        if !change.isEmpty { (tell ?? self.tell)(change) }
        return end
    }

    /// Takes back the failure of a gateway whose entry was removed. The kernel tells of that as of a failure first, and
    /// a route's next hop without an entry is as good as any (`neigh_delete` in net/core/neighbour.c).
    ///
    /// To be called once removals are let through: one that is not seen in the table yet is still told.
    private func verifyFailure(of gateway: NetworkSnapshot.Neighbour) -> KernelChange {
        switch try? neighbours.state(of: gateway) {
        case .neighbourForgotten, .neighbourChanged(_, isFailed: false): doubtFailure(of: gateway)
        default: KernelChange()
        }
    }

    /// How a read of what is queued ended.
    private struct Drained {
        /// How many datagrams there were.
        var count = 0
        /// Whether the kernel dropped some before.
        var lostSome = false
        /// Whether nothing is left.
        var isEmpty = false
    }

    /// Reads what is queued on `socket`, up to a bound.
    private func drain(_ socket: NetlinkSocket, _ take: (NetlinkMessage) -> Void) -> Drained {
        var drained = Drained()
        while drained.count < Self.datagramsPerTurn, !drained.isEmpty {
            switch try? socket.receive() {
            case .messages(let datagram):
                drained.count += 1
                NetlinkMessage.forEach(in: datagram, take)
            case .overrun:
                // It comes before what is queued, and the socket works on: so does this loop.
                overruns += 1
                drained.lostSome = true
            case .empty:
                drained.isEmpty = true
            case nil:
                // No error of a netlink socket but an overrun is known to happen; whatever it was, look at everything.
                (drained.lostSome, drained.isEmpty) = (true, true)
            }
        }
        return drained
    }

    /// Says that the snapshot may be wrong, and sets the time at which it will be right again.
    private func markIncoherent() -> KernelChange {
        if rereadTimer == nil {
            let due = max(lastReread + rereadDelay, BootClock.now())
            rereadTimer = Timers.shared.schedule(at: due) { [weak self] in
                self?.rereadTimer = nil
                // Reads what is queued first, then everything.
                self?.readNotices()
            }
        }
        guard snapshot.isCoherent else { return KernelChange() }
        snapshot.isCoherent = false
        recorder?.noteIncoherence()
        return KernelChange(.coherence)
    }

    private func reread() -> KernelChange {
        lastReread = BootClock.now()
        guard var fresh = try? KernelDump(on: requests).read(kinds: &kinds) else {
            rereadDelay = min(rereadDelay * 2, Self.longestRereadDelay)
            return markIncoherent()
        }
        recorder?.noteReread(isCoherent: fresh.isCoherent)
        rereadDelay = Self.rereadInterval
        needsReread = !fresh.isCoherent
        fresh.takeNeighbours(of: snapshot)
        var change = snapshot.replace(with: fresh)
        change.merge(rereadNeighbours())
        expiries.ask()
        if needsReread { change.merge(markIncoherent()) }
        return change
    }

    private func rereadNeighbours() -> KernelChange {
        var change = returned(neighbours.watchSilentRouters())
        for event in (try? neighbours.reread()) ?? [] { change.merge(snapshot.apply(event)) }
        _ = try? neighbours.update(open: snapshot.openNeighbours)
        for gateway in snapshot.openNeighbours { change.merge(verifyFailure(of: gateway)) }
        return change
    }
}
