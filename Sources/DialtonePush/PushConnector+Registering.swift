// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtonePlatform
internal import DialtoneWebPush

/// Finding a distributor, and what it is called with.
extension PushConnector {
    private nonisolated static let prefix = "org.unifiedpush.Distributor."
    private nonisolated static let path = "/org/unifiedpush/Distributor"
    private nonisolated static let interface = "org.unifiedpush.Distributor2"
    /// By which a person says which distributor is to be used where there are several, as other connectors know it: the
    /// bus name, or what is behind the prefix in it.
    private nonisolated static let variable = "UNIFIEDPUSH_DISTRIBUTOR"

    /// How long a distributor may take to register: it may have to be started, and ask its server.
    private nonisolated static let registrationLimit = Duration.seconds(60)
    /// The pauses before a registration is tried again that failed for something passing: the second is twice the
    /// first, and so on. A distributor that comes or restarts is noticed without them.
    nonisolated static let firstPause = Duration.seconds(30)
    private nonisolated static let longestPause = Duration.seconds(3600)

    // MARK: Choosing

    /// Looks which distributors there are and registers at one of them.
    func findDistributor() {
        guard let bus, !desired.isEmpty else { return }
        if isRegistering { return isOutdated = true }
        isRegistering = true
        retry?.cancel()
        bus.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ListNames") {
            [weak self] answer in
            guard let self else { return }
            guard case .success(let message) = answer else { return isRegistering = false }
            var running: Set<String> = []
            message.forEach(in: "s") { message.string().map { _ = running.insert($0) } != nil }
            bus.activatableNames { [weak self] startable in
                self?.choose(running: running, startable: (try? startable.get()) ?? [])
            }
        }
    }

    private func choose(running: Set<String>, startable: Set<String>) {
        isRegistering = false
        let name = Self.choice(
            running: running, startable: startable, kept: registrations.byType.values.first?.distributor,
            wanted: settings.environment[Self.variable])
        distributor = name
        guard let name else { return fail(.noDistributor) }
        let missing = desired.sorted { $0.rawValue < $1.rawValue }
        isRegistering = true
        register(missing[...], at: name)
    }

    /// The distributor to register at: the one that the user names, else the one that the app is registered at, else
    /// the first that runs, else the first that can be started.
    nonisolated static func choice(
        running: Set<String>, startable: Set<String>, kept: String?, wanted: String?
    ) -> String? {
        func distributors(_ names: Set<String>) -> [String] {
            names.filter { $0.hasPrefix(prefix) && isBusName($0) }.sorted()
        }
        let (running, startable) = (distributors(running), distributors(startable))
        let all = running + startable
        if let wanted, let name = all.first(where: { $0 == wanted || $0 == prefix + wanted }) { return name }
        if let kept, all.contains(kept) { return kept }
        return all.first
    }

    // MARK: Registering

    /// Registers for one type after the other, so that a distributor that is started for the first knows both.
    private func register(_ types: ArraySlice<PushType>, at name: String) {
        guard let type = types.first, let bus, let registration = registration(for: type, at: name) else {
            isRegistering = false
            if isOutdated {
                isOutdated = false
                findDistributor()
            }
            return
        }
        var arguments: [String: BusValue] = [
            "service": .string(settings.appID), "token": .string(registration.token),
            // Of our own; distributors that do not know it pass over it.
            "org.dialtone.type": .string(type.rawValue),
        ]
        if let description = settings.description { arguments["description"] = .string(description) }
        if let key = settings.serverKey { arguments["vapid"] = .string(key) }
        bus.call(
            name, Self.path, Self.interface, "Register", isStarting: true, limit: Self.registrationLimit,
            filling: { $0.value(.dictionary(arguments)) }
        ) { [weak self] answer in
            guard let self else { return }
            registered(type, at: name, answer)
            register(types.dropFirst(), at: name)
        }
    }

    /// The registration for a type, on disk before anybody hears of it.
    ///
    /// - Returns: `nil` where it cannot be kept, or made; the app was told.
    private func registration(for type: PushType, at name: String) -> Registration? {
        if var registration = registrations[type] {
            // Another distributor has another endpoint.
            if registration.distributor != name { (registration.distributor, registration.endpoint) = (name, nil) }
            return keep(type, registration) ? registration : nil
        }
        do throws(WebPushError) {
            let registration = try Registration(type, at: name)
            return keep(type, registration) ? registration : nil
        } catch {
            fail(.invalidSettings("\(error)"))
            return nil
        }
    }

    private func registered(_ type: PushType, at name: String, _ answer: Result<BusMessage, BusFailure>) {
        switch answer {
        case .failure(.disconnected): return
        case .failure(let failure): fail(.distributorFailed(name: name, reason: "\(failure)"))
        case .success(let message):
            let values = message.values()?.first?.dictionary
            switch (values?["success"]?.text, values?["reason"]?.text.flatMap(PushError.RegistrationFailure.init)) {
            case ("REGISTRATION_SUCCEEDED", _): return pause = Self.firstPause
            case ("REGISTRATION_FAILED", let reason?):
                fail(.registrationFailed(type, reason))
                guard reason.isPassing else { return }
            default: fail(.distributorFailed(name: name, reason: "its answer is not the specification's"))
            }
        }
        retryLater()
    }

    private func retryLater() {
        retry?.cancel()
        retry = Timers.shared.schedule(after: pause) { [weak self] in
            guard let self, isNamed else { return }
            findDistributor()
        }
        pause = min(pause * 2, Self.longestPause)
    }

    // MARK: Unregistering

    /// Gives up what is no longer wanted. What a distributor does not hear of now it learns by nobody knowing the
    /// token.
    func unregisterOthers() {
        for (type, registration) in registrations.byType where !desired.contains(type) {
            guard keep(type, nil) else { continue }
            bus?.call(
                registration.distributor, Self.path, Self.interface, "Unregister", isStarting: true,
                filling: { $0.value(.dictionary(["token": .string(registration.token)])) }
            ) { _ in }
        }
    }
}
