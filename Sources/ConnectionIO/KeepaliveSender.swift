// SPDX-License-Identifier: Apache-2.0

internal import DialtoneCoalescing
internal import DialtoneConnection
internal import DialtonePlatform

/// Who hears of the keepalives of a connection's flows.
@AgentQueue
protocol KeepaliveSenderOwner: AnyObject {
    /// Told in whichever turn it is known, also within a call of the keepaliveSender.
    func keepaliveSender(heard word: ConnectionInput)
    /// A message of the server's was answered on a flow, and nobody else is to hear of it.
    func keepaliveSenderAnswered(on epoch: UInt64)
}

/// Sends the keepalives of one connection, looks for their answers, and has the kernel probe where nothing may be sent.
///
/// It decides neither when (``CoalescedTimers``) nor what is to be made of silence (``ConnectionStateMachine``). What
/// it reads is an answer that it awaits, or a message that it answers, and nothing else (``ParkedInput``); the client's
/// bytes are looked at and left where they are. How
/// often follows, for a heartbeat that is adaptive, from what became of those before (``IntervalLearner``).
@AgentQueue
final class KeepaliveSender {
    /// How long after it was asked for the kernel's probe is looked for. The kernel sends one on a line that was silent
    /// for a second (the least that `TCP_KEEPIDLE` takes), which mostly is at once; the last look is the deadline's own
    /// (``lookForProof()``).
    private static let looks: [Duration] = [.milliseconds(300), .milliseconds(1200), .milliseconds(2200)]
    /// How long after a socket said nothing it is asked again whether something waits: the edge of what came is past by
    /// then, and nobody else would tell of it.
    static let nextLook = Duration.seconds(5)
    /// After this long the kernel probes no more, whatever came of it: longer than any proof may take.
    private static let longestProbing = Duration.seconds(10)

    struct Attended {
        let flow: Flow
        var heartbeat: Heartbeat?
        /// What is looked for in what has come.
        var input = ParkedInput()
        /// The rest of a reply of which the socket took a part.
        var unsent: ArraySlice<UInt8> = []
        /// Whether a reply found no room.
        var lacksRoom = false
        /// Whether something is to be written as soon as there is room.
        var awaitsRoom: Bool { lacksRoom || !unsent.isEmpty }
        /// When the last keepalive was sent.
        var sentAt = Duration.zero
        var wake: TimerCoalescer.Token?
        /// How often ``wake`` comes, and since when it is counted.
        var cadence: Cadence?
        var lastBeat = Duration.zero
        /// The network that the flow goes through, where it is known.
        var network: NetworkIdentity?
        /// The heartbeat that is not known to have arrived, and how long the flow had carried nothing before it.
        var outstanding: (silence: Duration, sentAt: Duration)?
        var probe: KernelProbe?
        /// Whether the owner is to be told when bytes for the client wait.
        var isWatched = false
        /// Who wants to hear when more bytes than so many wait.
        var further: (count: Int, handler: @AgentQueue () -> Void)?
        /// When a socket that said nothing is asked again, or what may become a message is the client's.
        var look: Timers.Timer?

        init(flow: Flow) { self.flow = flow }
    }

    /// What the server's kernel is to acknowledge.
    struct KernelProbe {
        let begun: Duration
        /// The last acknowledgement when a probe was asked for; `nil` where bytes of ours wait for theirs.
        let before: Duration?
        var timers: [Timers.Timer] = []
    }

    private let wakes: CoalescedTimers
    private let learner: IntervalLearner
    unowned let owner: any KeepaliveSenderOwner
    var kept = ByEpoch<Attended>()
    private var loss = SilentLoss()
    private var patience = ServerPatience()
    /// What was last told of a flow whose network is not known yet.
    private var unplaced: ConnectionEvent?
    /// How long the flow had carried nothing that ended last, and what is usual for its protocol, until it is known how
    /// it ended.
    private var lastSilence: (silence: Duration, usual: Duration)?

    /// A keepaliveSender of no flow yet.
    init(_ wakes: CoalescedTimers, _ learner: IntervalLearner, owner: any KeepaliveSenderOwner) {
        self.wakes = wakes
        self.learner = learner
        self.owner = owner
    }

    // MARK: - Requests

    /// Sends `heartbeat` on a flow from now on; `nil` for no more.
    func keepAlive(_ flow: Flow, _ heartbeat: Heartbeat?) {
        let epoch = flow.epoch
        forgetHeartbeat(of: epoch)
        guard let heartbeat else { return }
        var kept = self.kept[epoch] ?? Attended(flow: flow)
        kept.heartbeat = heartbeat
        kept.input.keepalive = KeepaliveDialogue(heartbeat.kind)
        kept.cadence = heartbeat.cadence
        kept.lastBeat = BootClock.now()
        kept.wake = wakes.add(heartbeat.cadence, wakesMachine: heartbeat.wakesMachine) { [weak self] in
            self?.beat(epoch)
        }
        self.kept[epoch] = kept
        guard heartbeat.bounds != nil else { return }
        learner.join(id(of: epoch), self)
        adapt(epoch)
    }

    /// The longest time between two keepalives on a flow; `nil` where none are sent.
    func interval(on epoch: UInt64) -> Duration? {
        kept[epoch].flatMap { $0.wake == nil ? nil : $0.cadence?.interval }
    }

    /// Answers these messages on a flow from now on; `nil` for none.
    func answer(_ messages: AnsweredMessages?, on flow: Flow) {
        guard messages != nil || kept[flow.epoch] != nil else { return }
        kept[flow.epoch, default: Attended(flow: flow)].input.questions = messages.map { ServerQuestions($0) }
        awaitInput(on: flow.epoch)
    }

    /// Tells, once, when bytes wait on a flow that are neither an answer nor answered; or does not any more.
    func watchInput(of flow: Flow, _ isWatched: Bool) {
        let epoch = flow.epoch
        kept[epoch, default: Attended(flow: flow)].isWatched = isWatched
        kept[epoch]?.further = nil
        awaitInput(on: epoch)
        // The edge of what came before this was asked for is past.
        if isWatched, flow.mayHaveUnread { inputArrived(on: epoch) }
    }

    /// Calls `handler` once, when more than `count` bytes wait.
    func awaitBytes(on flow: Flow, beyond count: Int, _ handler: @escaping @AgentQueue () -> Void) {
        kept[flow.epoch, default: Attended(flow: flow)].further = (count, handler)
        awaitInput(on: flow.epoch)
        if flow.knownUnread.map({ $0 > count }) ?? true { inputArrived(on: flow.epoch) }
    }

    /// Finds out at once whether the other end is there.
    func probe(_ flow: Flow) {
        if kept[flow.epoch] == nil { kept[flow.epoch] = Attended(flow: flow) }
        if send(on: flow.epoch, isVerification: true) {
            if let wake = kept[flow.epoch]?.wake { wakes.restart(wake) }
            kept[flow.epoch]?.lastBeat = BootClock.now()
            // Of a program that answers no keepalive, the kernel acknowledges it.
            awaitAcknowledgement(of: flow, before: nil)
        } else {
            probeByKernel(flow)
        }
    }

    /// Awaits no answer any more: the server gives none, or its time is over.
    func giveUpAnswers(on epoch: UInt64) {
        _ = kept[epoch]?.input.keepalive?.giveUp()
        // What might have become an answer is the client's.
        inputArrived(on: epoch)
    }

    /// The options of a flow's socket were set anew: a probe that is on its way goes on.
    func configured(_ epoch: UInt64) {
        guard let kept = kept[epoch] else { return }
        if kept.wake != nil, let cadence = kept.cadence, kept.heartbeat?.bounds != nil {
            kept.flow.probeByKernel(afterSilence: cadence.interval)
        }
        if kept.probe?.before != nil { kept.flow.beginProbing() }
    }

    /// Tells what has come, and what the kernel has heard since it was asked to probe. To be done before a deadline is
    /// judged: a process that was stopped finds the answer and the deadline at the same time, in any order.
    func lookForProof() {
        for epoch in kept.epochs.sorted() {
            if kept[epoch]?.input.keepalive?.isAwaitingAnswer == true {
                kept[epoch]?.flow.takeWhatCame()
                sortInput(on: epoch)
            }
            look(epoch)
        }
    }

    /// Sends nothing any more on a flow that is about to be closed, and awaits nothing. Why it ended comes with the
    /// next event (``heard(_:on:)``).
    func forget(_ epoch: UInt64) {
        // An answer that is there would else be taken for what the client has to read yet.
        read(epoch)
        if let kept = kept[epoch], kept.wake != nil, let heartbeat = kept.heartbeat, heartbeat.bounds != nil {
            lastSilence = kept.flow.dataSilence.map { ($0, heartbeat.kind.figures.cadence.interval) }
            if let beat = kept.outstanding, let network = kept.network, !kept.flow.isDrained {
                loss.suspect(
                    .init(silence: beat.silence, sentAt: beat.sentAt, network: network), at: BootClock.now())
            }
        }
        forgetHeartbeat(of: epoch)
        endProbe(of: epoch)
        kept[epoch]?.look?.cancel()
        kept[epoch] = nil
    }

    /// Something happened to the connection.
    ///
    /// - Parameter network: the one that its flow goes through, where it has one that could be known again.
    func heard(_ event: ConnectionEvent, on network: NetworkIdentity?) {
        if let (silence, usual) = lastSilence.take(), event.reason.isServersEnding {
            patience.ended(after: silence, usual: usual)
        }
        if event.status.state == .ready, network == nil {
            unplaced = event
        } else {
            judge(event, on: network)
        }
        if event.status.state.hasFlow { place(event.status.epoch, in: network) }
    }

    /// The network that a flow goes through is this one, where it was not known yet when the flow was told of.
    func found(_ network: NetworkIdentity?, of epoch: UInt64) {
        guard let network else { return }
        if let event = unplaced, event.status.epoch == epoch { judge(event, on: network) }
        place(epoch, in: network)
    }

    private func judge(_ event: ConnectionEvent, on network: NetworkIdentity?) {
        unplaced = nil
        let death = loss.heard(event, on: network, at: BootClock.now())
        guard let death, let heartbeat = kept[event.status.epoch]?.heartbeat else { return }
        learner.died(death, heartbeat.kind.figures)
    }

    private func place(_ epoch: UInt64, in network: NetworkIdentity?) {
        guard let before = kept[epoch], before.network != network else { return }
        kept[epoch]?.network = network
        // What is on its way went through the other one.
        kept[epoch]?.outstanding = nil
        learner.leave(id(of: epoch))
        guard before.wake != nil, before.heartbeat?.bounds != nil else { return }
        learner.join(id(of: epoch), self)
        adapt(epoch)
    }

    private func forgetHeartbeat(of epoch: UInt64) {
        guard let wake = kept[epoch]?.wake else { return }
        wakes.remove(wake)
        learner.leave(id(of: epoch))
        kept[epoch]?.wake = nil
        kept[epoch]?.input.keepalive = nil
        kept[epoch]?.outstanding = nil
        awaitInput(on: epoch)
    }

    // MARK: - The protocol's keepalive

    /// The time for a flow's heartbeat has come.
    func beat(_ epoch: UInt64) {
        if !send(on: epoch, isVerification: false) { awaitDelivery(on: epoch) }
        kept[epoch]?.lastBeat = BootClock.now()
        adapt(epoch)
    }

    /// Sends a keepalive, if one may be sent now.
    ///
    /// - Returns: whether one was sent whose answer will show in the stream.
    private func send(on epoch: UInt64, isVerification: Bool) -> Bool {
        guard var dialogue = kept[epoch]?.input.keepalive, let kept = self.kept[epoch], let heartbeat = kept.heartbeat,
            kept.unsent.isEmpty, kept.flow.unreadBytes == 0, kept.flow.isDrained
        else {
            // With bytes of the client in front, an answer would not be found; with some that the server has not
            // acknowledged, the line shows by them whether it is alive.
            return false
        }
        let now = BootClock.now()
        if now >= kept.sentAt + heartbeat.answerDeadline {
            // A server that never answers one lives all the same, and the next one is due.
            dialogue.giveUp()
        }
        settle(epoch)
        let silence = kept.flow.silence
        var random = Chance()
        guard let bytes = try? dialogue.ping(isVerification: isVerification, using: &random),
            kept.flow.send(bytes)
        else { return false }
        self.kept[epoch]?.input.keepalive = dialogue
        self.kept[epoch]?.sentAt = now
        if !isVerification { self.kept[epoch]?.outstanding = silence.map { ($0, now) } }
        guard heartbeat.kind.figures.answer == .message else { return false }
        awaitInput(on: epoch)
        owner.keepaliveSender(heard: .probeSent(epoch: epoch))
        return true
    }

    // MARK: - How often

    /// Puts the interval of a flow's heartbeat to what is known by now. The silence that runs counts.
    func adapt(_ epoch: UInt64) {
        guard let kept = kept[epoch], let wake = kept.wake, let heartbeat = kept.heartbeat, heartbeat.bounds != nil
        else { return }
        let cadence = learner.cadence(
            of: heartbeat, on: kept.network, atMost: patience.limit, for: id(of: epoch))
        guard cadence != kept.cadence else { return }
        self.kept[epoch]?.cadence = cadence
        wakes.change(wake, to: cadence, after: kept.lastBeat)
        configured(epoch)
    }

    /// What was sent last has arrived.
    func settle(_ epoch: UInt64) {
        guard let kept = kept[epoch], let beat = kept.outstanding, let heartbeat = kept.heartbeat else { return }
        self.kept[epoch]?.outstanding = nil
        patience.survived()
        guard let network = kept.network, heartbeat.bounds != nil else { return }
        learner.survived(beat.silence, on: network, heartbeat.kind.figures)
    }

    private func id(of epoch: UInt64) -> IntervalLearner.FlowID {
        .init(keepaliveSender: ObjectIdentifier(self), epoch: epoch)
    }

    // MARK: - The kernel's probe

    func probeByKernel(_ flow: Flow) {
        guard let before = flow.lastAcknowledgement(withData: true) else { return }
        awaitAcknowledgement(of: flow, before: before)
        flow.beginProbing()
    }

    /// Where a keepalive waits behind bytes that the server has not acknowledged, has these take its place.
    private func awaitDelivery(on epoch: UInt64) {
        guard let flow = kept[epoch]?.flow, kept[epoch]?.probe == nil, !flow.isDrained else { return }
        owner.keepaliveSender(heard: .undelivered(epoch: epoch))
        if kept[epoch] != nil { awaitAcknowledgement(of: flow, before: nil) }
    }

    private func awaitAcknowledgement(of flow: Flow, before: Duration?) {
        let epoch = flow.epoch
        endProbe(of: epoch)
        kept[epoch]?.probe = KernelProbe(
            begun: BootClock.now(), before: before,
            timers: Self.looks.map { delay in
                Timers.shared.schedule(after: delay) { [weak self] in self?.look(epoch) }
            } + [
                Timers.shared.schedule(after: Self.longestProbing) { [weak self] in
                    self?.look(epoch)
                    self?.endProbe(of: epoch)
                }
            ])
    }

    private func look(_ epoch: UInt64) {
        guard let kept = kept[epoch], let probe = kept.probe else { return }
        if let before = probe.before {
            guard let heard = kept.flow.lastAcknowledgement, heard > before + Flow.acknowledgementGranularity else {
                return
            }
        } else if !kept.flow.isDrained {
            return
        }
        endProbe(of: epoch)
        owner.keepaliveSender(heard: .acknowledged(epoch: epoch, begun: probe.begun))
    }

    private func endProbe(of epoch: UInt64) {
        guard let kept = kept[epoch], let probe = kept.probe else { return }
        for timer in probe.timers { timer.cancel() }
        if probe.before != nil { kept.flow.endProbing() }
        self.kept[epoch]?.probe = nil
    }
}
