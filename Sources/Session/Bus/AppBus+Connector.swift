// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
package import DialtoneDistributor
internal import DialtonePlatform

/// Calls of the apps' connectors (UnifiedPush, `dbus.md`, "Connector API").
extension AppBus {
    private nonisolated static let connectorPath = "/org/unifiedpush/Connector"

    /// Calls an app's connector, which starts an app that does not run.
    ///
    /// - Parameter completion: is called once, later, with what came of it; not at all where the bus went meanwhile
    ///   (``AppBusOwner/busLost()``), since nobody knows then whether the app has it.
    package func tell(_ telling: AppTelling, _ completion: @escaping @AgentQueue (AppAnswer) -> Void) {
        let (method, arguments) = Self.call(telling)
        guard let bus, bus.isConnected else {
            return AgentQueue.async { completion(.notStarted("there is no bus")) }
        }
        bus.call(
            telling.app.name, Self.connectorPath, "org.unifiedpush.Connector\(telling.version.rawValue)", method,
            isStarting: true, limit: telling.timeout, filling: { for value in arguments { $0.value(value) } }
        ) { [weak self] answer in
            switch answer {
            case .success(let message): completion(Self.answer(to: telling, message.values()))
            case .failure(let failure): self?.tell(failure, of: telling.app.name, completion)
            }
        }
    }

    /// The method of a call, and what it takes.
    private nonisolated static func call(_ telling: AppTelling) -> (method: String, arguments: [BusValue]) {
        let token = BusValue.string(telling.token)
        switch (telling.content, telling.version) {
        case (.message(let body, let id), .v2):
            return (
                "Message", [.dictionary(["token": token, "message": .bytes(body), "id": .string(id)])]
            )
        case (.message(let body, let id), .v1): return ("Message", [token, .bytes(body), .string(id)])
        case (.newEndpoint(let url), .v2):
            return ("NewEndpoint", [.dictionary(["token": token, "endpoint": .string(url)])])
        case (.newEndpoint(let url), .v1): return ("NewEndpoint", [token, .string(url)])
        case (.unregistered, .v2): return ("Unregistered", [.dictionary(["token": token])])
        // Where the app asked for it, version 1 leaves the token out.
        case (.unregistered(let isAsked), .v1): return ("Unregistered", [isAsked ? .string("") : token])
        }
    }

    /// What an answer says. One to a message by version 2 may name the message; if so, it must be this one.
    private nonisolated static func answer(to telling: AppTelling, _ values: [BusValue]?) -> AppAnswer {
        guard case .message(_, let id) = telling.content, telling.version == .v2,
            let named = values?.first?.dictionary?["id"], named.text != id
        else { return .taken }
        return .refused("it acknowledged another message")
    }

    private func tell(
        _ failure: BusFailure, of name: String, _ completion: @escaping @AgentQueue (AppAnswer) -> Void
    ) {
        switch failure {
        case .disconnected: break
        case .timedOut: completion(.unanswered)
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
