// SPDX-License-Identifier: Apache-2.0

internal import Activation
internal import Dialer
internal import Platform
internal import Supervisor

/// The wakes of one connection's client: tells ``WakeMachine`` what happens and does what it says.
@AgentQueue
final class ConnectionWaker {
    private let name: String
    private let owner: UInt32
    private let context: WakeContext
    private unowned let subject: any WakeSubject
    private var settings: WakeSettings
    /// Whether they name a client, which may not have come yet.
    private var isTended: Bool
    private var machine: WakeMachine
    private var random = SystemRandomNumberGenerator()
    private var timer: Timers.Timer?
    /// What happened while the actions of an earlier input ran.
    private var backlog: [WakeInput] = []
    private var isProcessing = false
    private var hasSteppedDown = false

    /// The process that parked the flow, or was launched for it.
    private(set) var client: ProcessHandle?
    /// The program that was launched, until its end.
    private(set) var program: ProcessHandle?
    /// Whether the flow was taken for a program of which no process is known yet.
    private(set) var isLaunching = false
    /// The flow that a launched program has.
    private var programEpoch: UInt64?
    /// The flow that the program has where that one had ended before. What came after that is not its to read.
    private var programRemnant: UInt64?
    /// Whether the client hears of the keepalive that is due, though it may watch nothing.
    private var isListening = false
    /// Whether what happens to the flow is this one's own doing.
    private var isHandling = false
    /// Whether a client has ever had the flow: who has none is not told of a new one.
    private(set) var hasHadClient = false
    private var lastEpoch: UInt64?
    private var hasStarted = false
    private var hadSession = false
    /// Rings when a client that was woken has had the flow for as long as it may.
    private var budget: Timers.Timer?
    /// The wake that was acknowledged last, and when.
    private var acknowledged: (wake: StandingWake, at: Duration)?
    /// Rings when what waits is looked at again: after a wake that was given up, or acknowledged and not seen to.
    private var review: Timers.Timer?
    /// When bytes that came after a wake was given up may begin another one.
    private var reviewableAt = Duration.zero
    /// How often in a row a client acknowledged, and left the bytes where they were.
    private var idleAcknowledgements = 0

    /// A flow that a program is launched with.
    private final class PassedFlow {
        private let flow: HandedFlow
        let epoch: UInt64
        let isOver: Bool
        let number: CInt

        init(_ flow: consuming HandedFlow) {
            (epoch, isOver, number) = (flow.epoch, flow.isOver, flow.descriptor.number)
            self.flow = consume flow
        }
    }

    init(
        _ name: String, owner: UInt32, _ settings: WakeSettings?, _ context: WakeContext, subject: any WakeSubject
    ) {
        self.name = name
        self.owner = owner
        self.context = context
        self.subject = subject
        isTended = Self.isTended(by: settings)
        self.settings = settings ?? context.settings(for: owner)
        let now = BootClock.now()
        // Above every number of a daemon that ran before on this boot, as those of events are: an acknowledgement that
        // comes late is not taken for that of another wake.
        machine = WakeMachine(policy: self.settings.policy, lastNumber: UInt64(now.milliseconds), now: now)
    }

    isolated deinit {
        timer?.cancel()
        budget?.cancel()
        review?.cancel()
    }

    /// Another process goes on from here: nobody is woken by this one any more.
    func stepDown() {
        hasSteppedDown = true
        timer?.cancel()
        budget?.cancel()
        review?.cancel()
    }

    /// The wake that has not been acknowledged.
    var standing: StandingWake? { machine.standing }

    // MARK: - What others tell

    /// Goes on under other settings.
    func change(to settings: WakeSettings?) {
        isTended = Self.isTended(by: settings)
        let settings = settings ?? context.settings(for: owner)
        guard settings != self.settings else { return }
        self.settings = settings
        tell(.policyChanged(settings.policy))
    }

    /// Whether a file names a client, which may not have come yet.
    private static func isTended(by settings: WakeSettings?) -> Bool {
        settings.map { $0.policy.steps != [.event] } ?? false
    }

    /// The connection goes on where an earlier run left it, with a client.
    ///
    /// - Parameter hadSession: whether the client was logged in on a flow.
    func resume(hadSession: Bool) {
        (hasStarted, hasHadClient, self.hadSession) = (true, true, hadSession)
    }

    /// Continues a wake of an earlier run.
    func restore(_ wake: StandingWake) {
        (hasStarted, hasHadClient) = (true, true)
        tell(.clientChanged(presence(with: nil)))
        tell(.restored(wake))
    }

    /// The client acknowledged a wake.
    func acknowledge(_ wake: UInt64) {
        guard machine.standing?.number == wake else { return }
        noteAcknowledgement()
        tell(.acknowledged(wake: wake))
        // It may have meant to take the flow, and died.
        guard subject.unreadBytes > 0 else { return }
        let pause = settings.policy.pauses.delay(afterFailures: idleAcknowledgements, using: &random)
        idleAcknowledgements += 1
        review = Timers.shared.schedule(after: pause) { [weak self] in self?.needForBytes() }
    }

    /// Wakes the client for bytes that are there, where nothing is being done about them.
    func needForBytes() {
        endReview()
        guard machine.standing == nil, subject.status?.custody?.holder == .daemon, subject.unreadBytes > 0 else {
            return
        }
        need(.data)
    }

    /// Has bytes that come after a wake was given up begin another one: at once, and then no more often than the
    /// longest pause between two rounds.
    private func awaitFurtherBytes() {
        let (now, count) = (BootClock.now(), subject.unreadBytes)
        let due = max(now, reviewableAt)
        reviewableAt = due + settings.policy.pauses.ceiling
        guard due > now else { return awaitBytes(beyond: count) }
        review = Timers.shared.schedule(at: due) { [weak self] in self?.awaitBytes(beyond: count) }
    }

    private func awaitBytes(beyond count: Int) {
        endReview()
        guard machine.standing?.hasFailed == true else { return }
        subject.awaitBytes(beyond: count) { [weak self] in self?.need(.data) }
    }

    private func endReview() {
        review?.cancel()
        review = nil
    }

    private func noteAcknowledgement() {
        if let wake = machine.standing { acknowledged = (wake, BootClock.now()) }
    }

    /// Counts from now how long the client has the flow that it was woken for.
    private func beginBudget() {
        let limit = context.budget
        guard let (wake, instant) = acknowledged.take(), BootClock.now() - instant < limit else { return }
        budget = Timers.shared.schedule(after: limit) { [weak self] in
            self?.subject.wake(did: WakeReport(.overran(limit: limit), wake))
        }
    }

    private func endBudget() {
        budget?.cancel()
        budget = nil
    }

    /// The client's own keepalive is due. Whoever asked for it wants it, whatever else the settings say.
    ///
    /// - Parameter isCalled: whether the client is called for it on a stream of its own, and hears of it in any case.
    func callForKeepalive(isCalled: Bool) {
        isListening = isCalled
        tell(.needed(.keepAlive, presence(with: .keepAlive)))
    }

    /// This process is the client from now on: it took the flow, or brought it.
    func clientCame(_ process: ProcessHandle?, of status: ConnectionStatus?) {
        if !hasStarted, let status, status.state.hasFlow { (hasStarted, lastEpoch) = (true, status.epoch) }
        hasHadClient = true
        client = process
        try? process?.onEnd { [weak self, weak process] in
            guard let self, let process, client === process else { return }
            presenceChanged()
            if review != nil, machine.standing == nil { needForBytes() }
        }
        presenceChanged()
    }

    /// A client took what the last flow left; there is nothing more to wake it for.
    func lastFlowTaken() { tell(.taken) }

    /// Whoever watched the connection does not any more, or somebody new does.
    func presenceChanged() {
        // Where no wake stands, it is looked at when one begins.
        if let wake = machine.standing, !wake.hasFailed { tell(.clientChanged(presence(with: nil))) }
    }

    /// The client wants something to be done, or is to do something, for which it must run.
    func need(_ reason: WakeReason) {
        guard settings.wantedReasons.contains(reason) else { return }
        guard isTended || hasHadClient || subject.isWatched(by: nil) else { return }
        tell(.needed(reason, presence(with: reason)))
    }

    /// Something happened to the connection.
    func heard(_ event: ConnectionEvent) {
        defer { if let custody = event.status.custody { hadSession = custody.session == .open } }
        switch event.kind {
        case .arrived:
            need(.data)
        case .taken, .parked:
            endBudget()
            guard !isHandling else { return }
            if event.kind == .taken {
                noteAcknowledgement()
                beginBudget()
            }
            // It is somebody else's now.
            programEpoch = nil
            idleAcknowledgements = 0
            endReview()
            tell(.taken)
        case .abandoned:
            endBudget()
            if !isHandling { need(.clientDied) }
        case .opened, .stateChanged:
            stateChanged(event)
        case .continued:
            continued(event.status)
        case .openingFailed:
            need(.openingFailed)
        case .sessionOpened, .addressFailed, .attemptBegan, .moveFailed, .pathChanged, .policyChanged, .wake:
            break
        }
    }

    /// The connection goes on as an earlier run of the agent left it: none of this is new to its client.
    private func continued(_ status: ConnectionStatus) {
        hasStarted = true
        guard let custody = status.custody else {
            if hadSession { need(.lost) }
            hadSession = false
            return
        }
        lastEpoch = status.epoch
        if custody.session == .open || custody.holder == .client { hasHadClient = true }
    }

    private func stateChanged(_ event: ConnectionEvent) {
        let status = event.status
        if status.custody?.holder != .client { endBudget() }
        if status.state == .closed {
            // What it left is there to be taken.
            return subject.hasUnreadEnd ? need(.data) : tell(.closed)
        }
        guard status.state.hasFlow, let custody = status.custody else {
            // Of a program that was launched, its end says more.
            if event.reason == .clientGone, !isHandling { need(.clientDied) }
            if hadSession { need(.lost) }
            hadSession = false
            return
        }
        guard status.epoch != lastEpoch else { return }
        lastEpoch = status.epoch
        let isFirst = !hasStarted
        hasStarted = true
        if isFirst { return tell(.started) }
        // A client that has not come yet has no session to make anew.
        if hasHadClient, custody.session == .none { need(.reconnected) }
    }

    /// How the client can be reached, with another reason to.
    private func presence(with reason: WakeReason?) -> ClientPresence {
        var presence = client?.presence ?? []
        let standing = machine.standing.flatMap { $0.hasFailed ? nil : $0.reasons } ?? []
        let isCalled = isListening && Set(standing + [reason].compactMap(\.self)) == [.keepAlive]
        if isCalled || subject.isWatched(by: client) { presence.insert(.subscribed) }
        return presence
    }

    // MARK: - The machine

    private func tell(_ input: WakeInput) {
        if hasSteppedDown { return }
        backlog.append(input)
        guard !isProcessing else { return }
        isProcessing = true
        defer { isProcessing = false }
        while !backlog.isEmpty {
            let next = backlog.removeFirst()
            for action in machine.process(next, now: BootClock.now(), using: &random) { perform(action) }
        }
    }

    private func perform(_ action: WakeAction) {
        switch action {
        case .attempt(let attempt): self.attempt(attempt)
        case .scheduleTimer(let deadline):
            timer?.cancel()
            timer = Timers.shared.schedule(at: deadline) { [weak self] in self?.ring() }
        case .cancelTimer:
            timer?.cancel()
            timer = nil
        case .report(let report):
            subject.wake(did: report)
            follow(report)
        }
    }

    private func follow(_ report: WakeReport) {
        switch report.kind {
        case .failed: awaitFurtherBytes()
        case .began, .acknowledged: endReview()
        case .joined, .attempted, .attemptFailed, .programEnded, .overran: break
        }
    }

    private func ring() {
        timer = nil
        // It may have been stopped or frozen since it was last looked at.
        presenceChanged()
        tell(.timerFired)
    }

    private func attempt(_ attempt: WakeAttempt) {
        let order = WakeOrder(
            attempt, settings.targets, connection: name, owner: owner, epoch: subject.status?.epoch ?? 0,
            socketPath: context.socketPath)
        guard attempt.means == .exec else {
            return context.perform(order, process: client, socket: nil, ended: { _ in }) { [weak self] in
                self?.answer(attempt, $0)
            }
        }
        // In a turn of its own: the connection may be in the middle of an event, and gives out no flow before its end.
        AgentQueue.async { [weak self] in self?.launch(attempt, order) }
    }

    private func answer(_ attempt: WakeAttempt, _ outcome: Activator.Outcome) {
        switch outcome {
        case .done, .launched: tell(.attempted(wake: attempt.wake, attempt: attempt.attempt, .done))
        case .failed(let reason):
            tell(.attempted(wake: attempt.wake, attempt: attempt.attempt, .failed(reason)))
        }
    }

    // MARK: - Programs

    private func launch(_ attempt: WakeAttempt, _ order: WakeOrder) {
        // The client may have come by itself meanwhile.
        guard !hasSteppedDown, let wake = machine.standing, wake.number == attempt.wake,
            wake.attempts == attempt.attempt
        else { return }
        isHandling = true
        defer { isHandling = false }
        let former = client
        // Before the flow is taken, which is written down.
        let isOtherUnderWay = isLaunching
        isLaunching = true
        let flow = takeFlow()
        // An earlier attempt that took too long may have it, and come to its end yet.
        if flow == nil { isLaunching = isOtherUnderWay }
        var order = order
        if let flow { order.epoch = flow.epoch }
        context.perform(
            order, process: nil, socket: flow?.number,
            began: { [weak self] in self?.began($0, flow) }, ended: { [weak self] in self?.programEnded($0) },
            { [weak self] outcome in
                guard let self else { return }
                // Unless another client has come meanwhile.
                if case .failed = outcome, let program, client === program { client = former }
                launched(attempt, flow, outcome)
            })
    }

    /// There is a process that is to become the program. Should this one end now, the next one holds on to that.
    private func began(_ process: ProcessHandle, _ flow: PassedFlow?) {
        if flow != nil { isLaunching = false }
        (client, program) = (process, process)
        if let flow { subject.programHas(flow.epoch, process) }
        subject.needsWritingDown()
    }

    private func takeFlow() -> PassedFlow? {
        guard let flow = subject.takeForProgram() else { return nil }
        return PassedFlow(flow)
    }

    private func launched(_ attempt: WakeAttempt, _ flow: PassedFlow?, _ outcome: Activator.Outcome) {
        if flow != nil { isLaunching = false }
        // Whether a wake still stands, whose end is told, or not.
        defer { subject.needsWritingDown() }
        switch outcome {
        case .launched(let process):
            program = process
            clientCame(process, of: subject.status)
            tell(.programStarted)
            answer(attempt, outcome)
            guard let flow else { return }
            if flow.isOver { programRemnant = flow.epoch } else { programEpoch = flow.epoch }
            subject.programHas(flow.epoch, process)
            tell(.taken)
        case .failed, .done:
            program = nil
            if let flow { giveBack(flow.epoch, .untouched) }
            answer(attempt, outcome)
        }
    }

    /// Goes on with a program that an earlier process launched.
    ///
    /// - Parameter epoch: the number of the flow that it has; `nil` where it has parked it by itself.
    func resume(_ program: ProcessHandle, with epoch: UInt64?) {
        (self.program, programEpoch) = (program, epoch)
        tell(.programStarted)
        context.follow(program) { [weak self] in self?.programEnded($0) }
    }

    /// The program has the flow, with which whatever stands is acknowledged.
    func programGoesOn() { tell(.taken) }

    private func programEnded(_ end: ProgramEnd) {
        let (epoch, remnant) = (programEpoch, programRemnant)
        (program, programEpoch, programRemnant) = (nil, nil, nil)
        // First the machine, so that what the flow's return brings with it finds no program.
        tell(.programEnded(end))
        for epoch in [remnant, epoch].compactMap(\.self) {
            giveBack(epoch, end == .exited(status: 0) ? .inOrder : .abandoned)
        }
        if remnant != nil { goOn() }
    }

    /// Wakes the client for what came after the flow that its program has read, and was told while its wake stood.
    private func goOn() {
        if subject.hasUnreadEnd { return need(.data) }
        needForBytes()
        if hasHadClient, subject.status?.custody == .new { need(.reconnected) }
    }

    /// An earlier process took the flow for a program, and ended before there was one.
    func launchWasCut(_ epoch: UInt64) { giveBack(epoch, .untouched) }

    private func giveBack(_ epoch: UInt64, _ way: ReturnOfFlow) {
        isHandling = true
        defer { isHandling = false }
        subject.programGaveBack(epoch, way)
    }
}
