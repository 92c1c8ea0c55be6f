// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtoneResolver

/// The addresses of one watched name, shared by all questions that mention it, for as long as there are any. When it is
/// asked for again is ``NameRecord``'s rule.
@AgentQueue
final class NameTracker {
    /// How long the first verdict waits for the other family once one has brought addresses (RFC 8305, section 3). What
    /// comes later is added then.
    static let otherFamilyPatience = Duration.milliseconds(50)

    /// What verdicts rest on.
    enum State: Hashable {
        /// The first answer is still to come.
        case pending
        /// It stands for these addresses.
        case resolved([IPAddress])
        /// It stands for none; or nobody could be asked, which is not final.
        case unresolved(isFinal: Bool)
    }

    /// What is known of the name.
    var state: State {
        switch record.answer {
        case nil: .pending
        case .success(let resolution): .resolved(resolution.addresses)
        case .failure(let error): .unresolved(isFinal: error.isFinal)
        }
    }

    private let name: String
    private let resolver: Resolver
    private let mayAsk: @AgentQueue () -> Bool
    private let changed: @AgentQueue () -> Void
    private let patienceLimit: Duration
    private var record: NameRecord
    private var query: Query?
    private var unanswered = 0
    private var patience: Timers.Timer?
    private var refresh: Timers.Timer?
    /// Whether the last question was not asked, since nobody who wants to know may ask now.
    private var isHeldBack = false

    /// Begins to resolve `name`; `changed` is called when its state differs, and `mayAsk` before each question to the
    /// name servers: where it says no, the name is as one that nobody could say anything about, and asked for again as
    /// such.
    init(
        _ name: String, by resolver: Resolver, record: NameRecord = NameRecord(),
        patience: Duration = otherFamilyPatience, mayAsk: @escaping @AgentQueue () -> Bool = { true },
        changed: @escaping @AgentQueue () -> Void
    ) {
        self.mayAsk = mayAsk
        patienceLimit = patience
        self.name = name
        self.record = record
        self.resolver = resolver
        self.changed = changed
        resolve()
    }

    /// Asks again now: the network is another than the one that answered, and may have other name servers, other views
    /// of the name, or any at all.
    func networkChanged() {
        record.networkChanged()
        if query == nil { resolve() }
    }

    /// Asks again if the name is concerned: it stands in the hosts file, or stood in it.
    func hostsFileChanged() {
        guard (try? record.answer?.get().source) == .hostsFile || resolver.isInHostsFile(name) else { return }
        query?.cancel()
        resolve()
    }

    /// Somebody else wants to know, who may be allowed to ask. That nobody could ask before is no answer for them.
    func askIfHeldBack() {
        guard isHeldBack, mayAsk() else { return }
        record.forgetHeldBack()
        resolve()
    }

    /// Takes down what somebody else was told about the name.
    func overheard(_ answer: Result<Resolution, ResolutionError>, for family: IPAddress.Family) {
        guard query == nil, record.take(answer, for: family) else { return }
        changed()
    }

    /// Ends the tracking.
    func stop() {
        query?.cancel()
        query = nil
        patience?.cancel()
        refresh?.cancel()
    }

    private func resolve() {
        refresh?.cancel()
        refresh = nil
        isHeldBack = !mayAsk()
        guard !isHeldBack else { return holdBack() }
        unanswered = 2
        query = resolver.answers(to: name, [.v6, .v4]) { [weak self] family, answer in
            self?.answered(answer, for: family)
        }
    }

    private func holdBack() {
        let answer = Result<Resolution, ResolutionError>.failure(.heldBack)
        let isNews = [IPAddress.Family.v6, .v4].map { record.take(answer, for: $0) }.contains(true)
        refresh = record.finishRound(now: BootClock.now()).map { instant in
            Timers.shared.schedule(at: instant) { [weak self] in self?.resolve() }
        }
        if isNews { changed() }
    }

    private func answered(_ answer: Result<Resolution, ResolutionError>, for family: IPAddress.Family) {
        unanswered -= 1
        let isNews = record.take(answer, for: family)
        if unanswered == 0 {
            query = nil
            refresh = record.finishRound(now: BootClock.now()).map { instant in
                Timers.shared.schedule(at: instant) { [weak self] in self?.resolve() }
            }
        }
        guard isNews || patience != nil else { return }
        if unanswered == 0 {
            publish()
        } else if patience == nil {
            patience = Timers.shared.schedule(after: patienceLimit) { [weak self] in self?.publish() }
        }
    }

    private func publish() {
        patience?.cancel()
        patience = nil
        changed()
    }
}

extension ResolutionError {
    /// A question that was not asked.
    static let heldBack = ResolutionError(.noAnswer, "not asked, too many DNS questions of this user at the moment")
}
