// SPDX-License-Identifier: Apache-2.0

internal import Activation
internal import Dialer
internal import Supervisor

// A connection, from one process of the agent to the next.

extension RegisteredConnection {
    /// What there is of it beyond this process.
    struct Legacy {
        /// What was last written down.
        fileprivate var written: KeptConnection?
        /// The client's process, and under which number the store has a descriptor of it.
        fileprivate var client: (process: ProcessHandle, number: UInt64?)?
        /// The wake that an earlier process began, until this one goes on with it.
        fileprivate var wake: StandingWake?
    }

    /// What the next process needs to go on with it; `nil` before it is at work.
    var kept: KeptConnection? {
        guard let driver else { return nil }
        var kept = KeptConnection(
            name: name, owner: owner, isConfigured: origin == .configuration,
            remote: subject(of: driver).remoteText)
        kept.mark = driver.policy.mark
        kept.user = driver.policy.user
        kept.redials = driver.policy.redials
        kept.parameters = parameters
        kept.opening = leftOpening?.given ?? []
        kept.flows = driver.keptFlows
        kept.client = legacy.client?.number
        kept.hasClient = waker?.hasHadClient ?? false
        kept.isLaunching = waker?.isLaunching ?? false
        kept.wake = legacy.wake ?? waker?.standing
        return kept
    }

    /// The same, once after it changed; `nil` where what was written down last still holds.
    ///
    /// Without what changes all the time and is found out by other means: the kernel knows of acknowledgements, and the
    /// events of the numbers of flows.
    func changes() -> KeptConnection? {
        storeClient()
        guard let kept else { return nil }
        var comparable = kept
        comparable.flows.epoch = 0
        comparable.flows.standing?.adoption.lastProof = nil
        if comparable == legacy.written { return nil }
        legacy.written = comparable
        return kept
    }

    /// Has the store have a descriptor of the client's process, and of no other.
    private func storeClient() {
        let process = taker ?? waker?.client
        guard let store, legacy.client?.process !== process else { return }
        if let number = legacy.client?.number { store.discard(number) }
        legacy.client = process.map { process in
            guard let copy = try? process.duplicateDescriptor() else { return (process, nil) }
            return (process, store.keep(copy))
        }
    }

    /// Nothing of it is needed any more.
    func forgetLegacy() {
        if let number = legacy.client?.number { store?.discard(number) }
        legacy = Legacy()
    }

    /// Goes on where an earlier process stopped.
    func resume(_ kept: KeptConnection, _ policy: ConnectionPolicy, in context: DialerContext) {
        let driver = ConnectionDriver(policy: policy, context: context, observer: self)
        self.driver = driver
        prepareCalls(policy, context)
        // Before the first event, with which all that is known is written down.
        legacy.wake = kept.wake
        leftOpening = LeftOpening(given: kept.opening)
        if kept.hasClient {
            // Its process may be one that cannot be watched, of another PID namespace.
            expectClient()
            waker?.resume(hadSession: kept.flows.standing?.adoption.custody.session == .open)
        }
        let process = claimClient(kept)
        driver.resume(kept.flows, leaving: leftOpening?.opening) { [store] in store?.claim($0) }
        resumeWake()
        guard driver.status.custody?.holder == .client else { return }
        if kept.isLaunching {
            expectClient()
            waker?.launchWasCut(driver.status.epoch)
            return
        }
        guard kept.client != nil else { return }
        if let process {
            hold(driver.status.epoch, by: process)
        } else {
            // It ended in between, and nothing is left of it.
            driver.abandon(driver.status.epoch)
        }
    }

    private func claimClient(_ kept: KeptConnection) -> ProcessHandle? {
        guard let number = kept.client, let descriptor = store?.claim(number) else { return nil }
        guard let process = try? ProcessHandle(descriptor) else {
            store?.discard(number)
            return nil
        }
        legacy.client = (process, number)
        clientCame(process)
        return process
    }

    /// Goes on with the wake of the process before: after the client is told that the connection goes on, and before
    /// there is another reason to wake it.
    func resumeWake() {
        if let wake = legacy.wake.take() { waker?.restore(wake) }
    }

    /// Whether a flow stands.
    var hasFlow: Bool { driver?.status.state.hasFlow ?? false }

    /// Ends this process's part in it.
    func stepDown() {
        driver?.stepDown()
        waker?.stepDown()
        endCalls()
    }
}
