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
        /// Processes, and under which numbers the store has a descriptor of each.
        fileprivate var processes: [(process: ProcessHandle, number: UInt64?)] = []
        /// What the store need not have any more, once that is written down.
        fileprivate var obsolete: [UInt64] = []
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
        kept.client = number(of: clientProcess)
        kept.program = number(of: waker?.program)
        kept.programProcess = waker?.program?.number
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
        storeProcesses()
        guard let kept else { return nil }
        var comparable = kept
        comparable.flows.epoch = 0
        comparable.flows.standing?.adoption.lastProof = nil
        if comparable == legacy.written { return nil }
        legacy.written = comparable
        return kept
    }

    /// What ``changes()`` gave is written down: nothing refers any more to what it left out.
    func changesAreWritten() {
        for number in legacy.obsolete { store?.discard(number) }
        legacy.obsolete = []
    }

    /// Who has the flow, or had it last.
    private var clientProcess: ProcessHandle? { taker ?? waker?.client }

    private func number(of process: ProcessHandle?) -> UInt64? {
        guard let process else { return nil }
        return legacy.processes.first { $0.process.isSame(as: process) }?.number
    }

    /// Has the store have a descriptor of each process that matters, and of no other.
    private func storeProcesses() {
        guard let store else { return }
        var processes: [(process: ProcessHandle, number: UInt64?)] = []
        for process in [clientProcess, waker?.program].compactMap(\.self) {
            if processes.contains(where: { $0.process.isSame(as: process) }) { continue }
            if let known = legacy.processes.first(where: { $0.process.isSame(as: process) }) {
                processes.append(known)
            } else if let copy = try? process.duplicateDescriptor() {
                processes.append((process, store.keep(copy)))
            } else {
                processes.append((process, nil))
            }
        }
        let numbers = Set(processes.compactMap(\.number))
        // What was written down last still refers to them.
        legacy.obsolete += legacy.processes.compactMap(\.number).filter { !numbers.contains($0) }
        legacy.processes = processes
    }

    /// Nothing of it is needed any more.
    func forgetLegacy() {
        for number in legacy.processes.compactMap(\.number) + legacy.obsolete { store?.discard(number) }
        legacy = Legacy()
    }

    /// Goes on where an earlier process stopped.
    func resume(_ kept: KeptConnection, _ policy: ConnectionPolicy, in context: DialerContext) {
        let driver = makeDriver(policy, context)
        prepareCalls(policy, context)
        // Before the first event, with which all that is known is written down.
        legacy.wake = kept.wake
        leftOpening = LeftOpening(given: kept.opening)
        if kept.wake != nil { expectClient() }
        if kept.hasClient {
            // Its process may be one that cannot be watched, of another PID namespace.
            expectClient()
            waker?.resume(hadSession: kept.flows.standing?.adoption.custody.session == .open)
        }
        let (client, program) = claimProcesses(kept)
        driver.resume(kept.flows, leaving: leftOpening?.opening) { [store] in store?.claim($0) }
        resumeWake()
        guard driver.status.custody?.holder == .client else { return }
        if kept.isLaunching {
            expectClient()
            waker?.launchWasCut(driver.status.epoch)
            return
        }
        guard kept.client != nil else { return }
        if let client, client === program {
            programHas(driver.status.epoch, client)
            waker?.programGoesOn()
        } else if let client {
            hold(driver.status.epoch, by: client)
        } else {
            // It ended in between, and nothing is left of it.
            driver.abandon(driver.status.epoch)
        }
    }

    private func claimProcesses(_ kept: KeptConnection) -> (client: ProcessHandle?, program: ProcessHandle?) {
        let isProgram = kept.program == kept.client
        let client = kept.client.flatMap { claimProcess($0, launchedAs: isProgram ? kept.programProcess : nil) }
        let program = isProgram ? client : kept.program.flatMap { claimProcess($0, launchedAs: kept.programProcess) }
        if let client { clientCame(client) }
        if let program {
            expectClient()
            let flow = kept.flows.standing?.adoption
            waker?.resume(program, with: client === program && flow?.custody.holder == .client ? flow?.epoch : nil)
        }
        return (client, program)
    }

    /// - Parameter launched: the process number of a launched program. The launcher is asked how that ended.
    private func claimProcess(_ number: UInt64, launchedAs launched: Int32?) -> ProcessHandle? {
        guard let descriptor = store?.claim(number) else { return nil }
        guard let process = try? ProcessHandle.passed(descriptor, launchedAs: launched) else {
            store?.discard(number)
            return nil
        }
        // It waits for an answer of the process before, which nobody gives.
        process.hangUp()
        legacy.processes.append((process, number))
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
