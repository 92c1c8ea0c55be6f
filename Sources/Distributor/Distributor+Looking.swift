// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// What is seen from outside: when to come back, and what waits.
extension Distributor {
    func nextDeadline(_ now: Moment) -> Duration? {
        var deadlines = serverDeadlines(now) + attempts.values.map(\.until)
        if let suspending { deadlines.append(suspending) }
        if let storeFailure, ledger.hasChanges { deadlines.append(storeFailure.retry) }
        for message in ledger.messages.values where !isBeingDelivered(message) {
            deadlines.append(now.uptime + message.expires.since(now.wall))
        }
        let load = CallLoad(attempts)
        for (number, waiting) in work {
            deadlines += waiting.calls.map(\.until)
            guard let registration = ledger.registrations[number] else { continue }
            if !waiting.queue.isEmpty, reasonToWait(registration, waiting, load) == nil {
                deadlines.append(waiting.retry)
            }
            if waiting.isTelling, waiting.telling == nil, canSave(now) || ledger.isSaved(registration),
                load.hasRoom(for: registration.request.app, limits)
            {
                deadlines.append(waiting.tellRetry)
            }
        }
        return deadlines.min()
    }

    /// Why nothing is delivered for a registration, other than that its time has not come; `nil` for no reason.
    private func reasonToWait(
        _ registration: Registration, _ waiting: Work, _ load: CallLoad
    ) -> RegistrationOverview.WaitReason? {
        if waiting.delivering != nil { return .delivering }
        if registration.kind == .voip { return nil }
        if suspending != nil { return .suspending }
        if !mayPass(waiting) { return .gated(leastUrgency) }
        return load.hasRoom(for: registration.request.app, limits) ? nil : .busy
    }

    /// The bus names of the apps for which messages wait.
    package var awaitedApps: Set<String> {
        Set(work.lazy.filter { !$0.value.queue.isEmpty }.compactMap { ledger.registrations[$0.key]?.request.app.name })
    }

    /// The newest settled messages in the order of their time, each with its registration if that still exists.
    ///
    /// - Parameter number: only those of this registration; `nil` for all.
    package func settled(
        of number: Int64?, atMost count: Int
    ) -> [(message: SettledMessage, registration: Registration?)] {
        let all = ledger.settledOrder.reversed().lazy.map { [ledger] message in
            (message, ledger.registration(at: message.server, message.origin.registration))
        }
        return all.filter { number == nil || $0.1?.number == number }.prefix(count).reversed()
    }

    /// Whether just this is registered.
    package func isRegistered(_ request: RegistrationRequest) -> Bool {
        ledger.registrations.values.contains { $0.request == request }
    }

    /// The apps that have a registration of this token.
    package func apps(registeredAs token: String) -> [AppIdentity] {
        ledger.registrations.values.lazy.map(\.request).filter { $0.token == token }.map(\.app)
    }

    /// Everything that is registered, by its number, and what waits for it.
    package var overview: [RegistrationOverview] {
        let load = CallLoad(attempts)
        return ledger.registrations.values.sorted { $0.number < $1.number }.map { registration in
            let waiting = work[registration.number] ?? Work()
            var reason: RegistrationOverview.WaitReason?
            if !waiting.queue.isEmpty {
                reason = reasonToWait(registration, waiting, load) ?? .retry(at: waiting.retry)
            }
            return RegistrationOverview(
                registration: registration, waiting: waiting.queue.count,
                bytes: waiting.queue.reduce(0) { $0 + (ledger.messages[$1]?.body.count ?? 0) }, reason: reason)
        }
    }
}

/// One registration, for a person who looks.
package struct RegistrationOverview: Hashable, Sendable {
    /// The registration.
    package var registration: Registration
    /// How many messages wait for the app, the one that is being delivered included.
    package var waiting: Int
    /// Their bytes.
    package var bytes: Int
    /// Why the first of them waits; `nil` where none does.
    package var reason: WaitReason?

    /// Why a message waits.
    package enum WaitReason: Hashable, Sendable {
        /// The app was called and has not answered.
        case delivering
        /// The app failed to take it, or could not be started, and is called again at that time of the uptime clock.
        case retry(at: Duration)
        /// The battery or the network lets only messages through that are at least so urgent.
        case gated(Urgency)
        /// The machine is about to sleep.
        case suspending
        /// So many calls are under way that this one waits for one of them.
        case busy
    }
}
