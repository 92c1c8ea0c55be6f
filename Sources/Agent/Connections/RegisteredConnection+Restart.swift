// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtonePersistence
internal import DialtoneProcesses

// A connection, from one process of the agent to the next.

extension RegisteredConnection {
    /// What the next process needs to go on with it; `nil` before it is at work.
    var kept: SavedConnection? {
        guard let driver else { return nil }
        var kept = SavedConnection(
            name: name, owner: owner, isConfigured: origin == .configuration,
            remote: subject(of: driver).remoteText)
        kept.mark = driver.policy.mark
        kept.user = driver.policy.user
        kept.redials = driver.policy.redials
        kept.parameters = parameters
        kept.opening = leftOpening?.given ?? []
        kept.answers = leftAnswers?.given ?? []
        kept.flows = driver.keptFlows
        kept.processes = processes.kept
        kept.totals = totals
        kept.clients = driver.clientele.knowing(Set(kept.processes.map(\.process)))
        return kept
    }

    /// The same, once after it changed; `nil` where what was written down last still holds.
    ///
    /// Without what is counted (``hasNewTotals`` says whether that changed), and without what changes all the time and
    /// is found out by other means: the kernel knows of acknowledgements, and the events of the numbers of flows. Those
    /// of attempts beside a flow that stands are in no event.
    func changes() -> SavedConnection? {
        keepProcesses()
        guard let kept else { return nil }
        var comparable = kept
        if comparable.flows.standing == nil { comparable.flows.epoch = 0 }
        comparable.flows.standing?.adoption.lastProof = nil
        comparable.totals = nil
        if comparable == written { return nil }
        written = comparable
        return kept
    }

    /// Has nothing of processes that do not matter any more.
    func keepProcesses() {
        if let driver { processes.keep(driver.processes) }
    }

    /// What ``changes()`` gave is written down.
    func changesAreWritten() {
        processes.keptIsWritten()
        totalsAreWritten()
    }

    /// Goes on where an earlier process stopped.
    func resume(_ kept: SavedConnection, _ policy: ConnectionPolicy, in context: DialerContext) {
        if let totals = kept.totals { self.totals = totals }
        let driver = makeDriver(policy, context)
        prepareCalls(policy, context)
        // Before the first event, with which all that is known is written down.
        leftOpening = LeftOpening(given: kept.opening)
        leftAnswers = LeftAnswers(given: kept.answers)
        let gone = kept.processes.filter { !processes.resume($0) }
        driver.resume(
            kept.flows, kept.clients, leaving: leftOpening?.value, answering: leftAnswers?.value
        ) { [store] in store?.claim($0) ?? [] }
        // It ended in between, and nothing is left of it.
        for process in gone { driver.process(.processEnded(process.process, .unseen)) }
        for kept in kept.processes where kept.launchedAs != nil {
            guard let handle = processes[kept.process] else { continue }
            wakes.follow(handle) { [weak self] in self?.ended(kept.process, $0) }
        }
    }

    /// Whether a flow stands.
    var hasFlow: Bool { driver?.status.state.hasFlow ?? false }

    /// Ends this process's part in it.
    func stepDown() {
        driver?.stepDown()
        endCalls()
    }
}

extension Clientele {
    /// The same for a reader who knows of these processes alone: any other is one that cannot be watched.
    func knowing(_ processes: Set<KnownProcess>) -> Clientele {
        var known = self
        let reader = { (reader: Reader?) -> Reader? in
            guard let process = reader?.process, !processes.contains(process) else { return reader }
            return .unknown
        }
        known.reader = reader(self.reader)
        known.ended = ended.map { .init(epoch: $0.epoch, reader: reader($0.reader)) }
        known.client = client.flatMap { processes.contains($0) ? $0 : nil }
        known.program = program.flatMap { processes.contains($0) ? $0 : nil }
        return known
    }
}
