// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
package import DialtoneDistributor
internal import DialtonePlatform

/// Calls of the apps' connectors (UnifiedPush, `dbus.md`, "Connector API").
extension AppBus {
    private nonisolated static let connectorPath = "/org/unifiedpush/Connector"

    /// Calls an app's connector, and starts an app that does not run. A program in another sandbox that has the app's
    /// name is not called: the call tells its endpoint, or takes its message away.
    ///
    /// - Parameter completion: is called once, later, with what came of it; not at all where the bus went meanwhile
    ///   (``AppBusOwner/busLost()``), since nobody knows then whether the app has it.
    package func tell(_ telling: AppTelling, _ completion: @escaping @AgentQueue (AppAnswer) -> Void) {
        guard let bus, bus.isConnected else {
            return AgentQueue.async { completion(.noBus) }
        }
        find(telling, mayStart: true, triesLeft: 2, completion)
    }

    /// Finds the connection that has the app's name.
    private func find(
        _ telling: AppTelling, mayStart: Bool, triesLeft: Int, _ completion: @escaping @AgentQueue (AppAnswer) -> Void
    ) {
        let name = telling.app.name
        bus?.owner(of: name) { [weak self] answer in
            switch answer {
            case .success(let owner?): self?.check(owner, telling, triesLeft, completion)
            case .success(nil) where mayStart:
                self?.bus?.start(name, limit: telling.timeout) { [weak self] answer in
                    switch answer {
                    case .success: self?.find(telling, mayStart: false, triesLeft: triesLeft, completion)
                    case .failure(let failure): self?.tell(failure, of: name, isCalled: false, completion)
                    }
                }
            case .success(nil): completion(.notStarted("it ended at its start"))
            case .failure(let failure): self?.tell(failure, of: name, isCalled: false, completion)
            }
        }
    }

    /// Sees whether a connection is the app's.
    private func check(
        _ owner: String, _ telling: AppTelling, _ triesLeft: Int,
        _ completion: @escaping @AgentQueue (AppAnswer) -> Void
    ) {
        let app = telling.app
        // The bus gives a unique name once.
        if known[app.name] == Known(owner: owner, sandbox: app.sandbox) {
            return call(owner, telling, triesLeft, completion)
        }
        sandbox(of: owner) { [weak self] result in
            switch result {
            case .success(let sandbox) where sandbox.name == app.sandbox:
                self?.known[app.name] = Known(owner: owner, sandbox: app.sandbox)
                self?.call(owner, telling, triesLeft, completion)
            case .success: completion(.notStarted("a program in another sandbox has its name"))
            case .failure(let refusal): completion(.notStarted(refusal.text))
            }
        }
    }

    private func call(
        _ owner: String, _ telling: AppTelling, _ triesLeft: Int,
        _ completion: @escaping @AgentQueue (AppAnswer) -> Void
    ) {
        let (method, arguments) = Self.call(telling)
        bus?.call(
            owner, Self.connectorPath, "org.unifiedpush.Connector\(telling.version.rawValue)", method,
            limit: telling.timeout, filling: { for value in arguments { $0.value(value) } }
        ) { [weak self] answer in
            switch answer {
            case .success(let message): completion(Self.answer(to: telling, message.values()))
            // It ended a moment ago, and nobody saw the call: dbus-broker's word for that, and dbus-daemon's.
            case .failure(.unknownService), .failure(.refusedByBus(BusFailure.Name.nameHasNoOwner, _)):
                guard triesLeft > 1 else { return completion(.refused("it ended before it was called")) }
                self?.find(telling, mayStart: true, triesLeft: triesLeft - 1, completion)
            case .failure(let failure): self?.tell(failure, of: telling.app.name, isCalled: true, completion)
            }
        }
    }

    /// The method of a call, and what it takes.
    private nonisolated static func call(_ telling: AppTelling) -> (method: String, arguments: [BusValue]) {
        let token = BusValue.string(telling.token)
        func named(_ values: [String: BusValue]) -> [BusValue] {
            var values = values
            values["token"] = token
            // So that the app's developer learns of it: the registration said "voip".
            if telling.isDemoted { values[RegistrationArguments.kindKey] = .string(PushKind.standard.rawValue) }
            return [.dictionary(values)]
        }
        switch (telling.content, telling.version) {
        case (.message(let body, let id), .v2):
            return ("Message", named(["message": .bytes(body), "id": .string(id)]))
        case (.message(let body, let id), .v1): return ("Message", [token, .bytes(body), .string(id)])
        case (.newEndpoint(let url), .v2):
            return ("NewEndpoint", named(["endpoint": .string(url)]))
        case (.newEndpoint(let url), .v1): return ("NewEndpoint", [token, .string(url)])
        case (.unregistered, .v2): return ("Unregistered", named([:]))
        // Where the app asked for it, version 1 leaves the token out.
        case (.unregistered(let isAsked), .v1): return ("Unregistered", [isAsked ? .string("") : token])
        }
    }

    /// What an answer says. One to a message by version 2 may name the message; if so, it must be this one. KDE's
    /// connector names it, and that of Flutter answers with an empty dictionary: both took it.
    private nonisolated static func answer(to telling: AppTelling, _ values: [BusValue]?) -> AppAnswer {
        guard case .message(_, let id) = telling.content, telling.version == .v2,
            let named = values?.first?.dictionary?["id"], named.text != id
        else { return .taken }
        return .refused("it acknowledged another message")
    }

    /// - Parameter isCalled: whether the app was called. Before that no time was the app's.
    private func tell(
        _ failure: BusFailure, of name: String, isCalled: Bool,
        _ completion: @escaping @AgentQueue (AppAnswer) -> Void
    ) {
        switch failure {
        case .disconnected: break
        case .timedOut: completion(isCalled ? .unanswered : .notStarted("it did not take its name in time"))
        case .serviceEnded: completion(.refused("it ended before it answered"))
        case .error(let error, let text): completion(.refused(text.isEmpty ? error : text))
        case .refusedByBus: completion(.notStarted("\(failure)"))
        case .unknownService(let text):
            // The bus may have said so although there is a service file: its start failed.
            bus?.activatableNames { answer in
                switch answer {
                case .success(let names): completion(names.contains(name) ? .notStarted(text) : .unknown)
                case .failure(.disconnected): break
                case .failure: completion(.notStarted(text))
                }
            }
        }
    }
}
