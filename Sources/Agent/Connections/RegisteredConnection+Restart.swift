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
        kept.processes = processes.kept
        kept.totals = totals
        let saved = driver.saved(knowing: Set(kept.processes.map(\.process)))
        kept.flows = driver.storedFlows(of: saved)
        kept.clients = saved.clientele
        // As long as the connection itself has not forgotten them.
        if saved.opening != nil { kept.opening = leftOpening?.given ?? [] }
        if saved.answers != nil { kept.answers = leftAnswers?.given ?? [] }
        return kept
    }

    /// The same, once after it changed (``Written``); `nil` where what was written down last still holds.
    func changes() -> SavedConnection? {
        keepProcesses()
        guard let kept else { return nil }
        let changed = Written(kept)
        if changed == written { return nil }
        written = changed
        return kept
    }

    /// What was written down, as far as it takes to see a change. Of most it is the hash, for the whole would take as
    /// much room as all else of a connection. What its client left has room already, and is shared.
    ///
    /// Without what is counted (``hasNewTotals`` says whether that changed), and without what changes all the time and
    /// is found out by other means: the kernel knows of acknowledgements, and the events of the numbers of flows. Those
    /// of attempts beside a flow that stands are in no event.
    struct Written: Equatable {
        private let hash: Int
        private let opening: [UInt8]
        private let answers: [UInt8]

        init(_ kept: SavedConnection) {
            (opening, answers) = (kept.opening, kept.answers)
            var rest = kept
            (rest.opening, rest.answers) = ([], [])
            if rest.flows.standing == nil { rest.flows.epoch = 0 }
            rest.flows.standing?.adoption.lastProof = nil
            rest.totals = nil
            // Of one connection they never change.
            rest.parameters = []
            hash = rest.hashValue
        }
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
        let saved = kept.flows.saved(kept.clients, leaving: leftOpening?.value, answering: leftAnswers?.value)
        driver.resume(kept.flows, saved) { [store] in store?.claim($0) ?? [] }
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
