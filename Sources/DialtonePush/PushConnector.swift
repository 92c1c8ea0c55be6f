// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtonePlatform
internal import DialtoneWebPush

/// An app's end of UnifiedPush's D-Bus protocol, version 2 (specification DBUS 0.3.0): owns the app's name, registers
/// at a distributor, and takes what the distributor calls it with.
@AgentQueue
final class PushConnector {
    /// What the app says of itself, and where it runs.
    struct Settings: Sendable {
        let appID: String
        let serverKey: String?
        let description: String?
        let busAddress: String?
        let environment: [String: String]

        /// What of it is wrong; `nil` for nothing.
        var problem: String? {
            if !isBusName(appID) { return "\"\(appID.prefix(255))\" is no bus name, as org.example.Phone is one" }
            if let serverKey, VAPID.key(of: serverKey) == nil {
                return "the server's key is no point of P-256 in 87 characters of base64url (RFC 8292)"
            }
            return nil
        }
    }

    /// The errors that a distributor gets for a push that was not handled.
    private static let tooMany = "org.dialtone.Push.Error.TooManyUnanswered"

    /// So many pushes may be with the app without an answer. A distributor that has more waits for answers, or tries
    /// again later.
    private static let mostUnanswered = 64

    let settings: Settings
    /// Is called with each event on the agent's queue. Set once, before anything happens.
    nonisolated(unsafe) var tell: (PushEvent) -> Void = { _ in }

    var bus: BusConnection?
    private var file: RegistrationFile?
    /// The registrations as they are on disk.
    private(set) var registrations = Registrations()
    var desired: Set<PushType> = []
    var isNamed = false
    /// The distributor that was chosen on this connection to the bus.
    var distributor: String?
    var isRegistering = false
    /// Whether the app asked for something else while it is being registered.
    var isOutdated = false
    var retry: Timers.Timer?
    var pause = PushConnector.firstPause
    /// What the app was told of in this process: a distributor that says the same again brings no news.
    private var told: [PushType: PushCredentials] = [:]
    private var unanswered = 0
    /// Whether the app was told that the distributor delivers its calls like any other pushes.
    private var isToldDemoted = false

    nonisolated init(_ settings: Settings) { self.settings = settings }

    // MARK: What the app asks for

    /// Registers for these types and for no others.
    func register(for types: Set<PushType>) {
        desired = types
        if start(), isNamed { settle() }
    }

    /// Makes what distributors know of the app what it asks for. They hear it only from the owner of the app's name.
    private func settle() {
        unregisterOthers()
        findDistributor()
    }

    /// Leaves the bus. The registrations stay.
    func stop() {
        retry?.cancel()
        bus = nil
    }

    /// Connects, unless it is done.
    private func start() -> Bool {
        if bus != nil { return true }
        if let problem = settings.problem {
            fail(.invalidSettings(problem))
            return false
        }
        guard let address = settings.busAddress else {
            fail(.noSessionBus)
            return false
        }
        guard let file = RegistrationFile(app: settings.appID, environment: settings.environment) else {
            fail(.invalidSettings("neither XDG_STATE_HOME nor HOME says where its keys can be kept"))
            return false
        }
        self.file = file
        if let bytes = file.read() {
            if let kept = Registrations(bytes) { registrations = kept } else { fail(.damaged(path: file.path)) }
        }
        let bus = BusConnection(
            address: address, connected: { [weak self] in self?.connected() }, lost: { [weak self] in self?.lost() })
        self.bus = bus
        // Before the name is asked for: a push for which the bus started this process comes with it.
        bus.serve("/org/unifiedpush/Connector", [connectorInterface])
        bus.own(settings.appID) { [weak self] in self?.named($0) }
        return true
    }

    private func connected() {
        bus?.subscribe(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                + "member='NameOwnerChanged',arg0namespace='org.unifiedpush.Distributor'"
        ) { [weak self] message in
            guard let name = message.string(), message.string() != nil, let owner = message.string() else { return }
            self?.distributorChanged(name, isThere: !owner.isEmpty)
        }
    }

    private func lost() {
        (isNamed, isRegistering, isOutdated, distributor) = (false, false, false, nil)
        retry?.cancel()
        pause = Self.firstPause
    }

    private func named(_ state: BusConnection.NameState) {
        isNamed = state == .owned
        switch state {
        case .owned: settle()
        case .waiting: fail(.nameTaken(name: settings.appID))
        case .refused(let failure): fail(.nameRefused(name: settings.appID, reason: "\(failure)"))
        }
    }

    /// A distributor came or went. One that restarted may have lost what it knew.
    private func distributorChanged(_ name: String, isThere: Bool) {
        guard isThere, isNamed, !isRegistering, distributor == nil || distributor == name else { return }
        findDistributor()
    }

    // MARK: Keeping

    /// Tells the app of trouble.
    func fail(_ error: PushError) { tell(.failed(error)) }

    /// Keeps a change of a registration, on disk first: what is not there is not acted on.
    ///
    /// - Returns: whether it is kept. If not, the app was told.
    func keep(_ type: PushType, _ registration: Registration?) -> Bool {
        guard registrations[type] != registration, let file else { return true }
        var changed = registrations
        changed[type] = registration
        do throws(SystemError) {
            try file.write(changed.bytes)
        } catch {
            fail(.notKept(error))
            return false
        }
        registrations = changed
        if registration == nil { told[type] = nil }
        return true
    }

    // MARK: What a distributor calls

    private nonisolated var connectorInterface: BusInterface {
        func method(
            _ name: String, _ take: @escaping @AgentQueue (PushConnector, [String: BusValue], BusCall) -> Void
        ) -> BusInterface.Method {
            BusInterface.Method(name, [.init("args", "a{sv}")], returns: [.init("result", "a{sv}")]) {
                [weak self] call in
                guard let self, let arguments = call.arguments.first?.dictionary else { return }
                take(self, arguments, call)
            }
        }
        return BusInterface(
            "org.unifiedpush.Connector2",
            [
                method("Message") { $0.takeMessage($1, $2) },
                method("NewEndpoint") { connector, arguments, call in
                    connector.takeEndpoint(arguments)
                    call.reply([.dictionary([:])])
                },
                method("Unregistered") { connector, arguments, call in
                    connector.takeEnd(arguments)
                    call.reply([.dictionary([:])])
                },
            ])
    }

    /// What the specification says to ignore is answered without the message's name: that acknowledges nothing.
    private func takeMessage(_ arguments: [String: BusValue], _ call: BusCall) {
        guard let registration = arguments["token"]?.text.flatMap(registrations.named),
            let message = arguments["message"]?.bytes
        else { return call.reply([.dictionary([:])]) }
        noteDemotion(registration, arguments)
        let identifier = arguments["id"]?.text
        let acknowledgement = BusValue.dictionary(identifier.map { ["id": .string($0)] } ?? [:])
        guard unanswered < Self.mostUnanswered else {
            return call.fail(Self.tooMany, "\(Self.mostUnanswered) pushes wait for the app's answer")
        }
        do throws(WebPushError) {
            let content = try registration.keys.decrypt(message)
            let payload = PushPayload(type: registration.type, bytes: content, identifier: identifier)
            unanswered += 1
            let place = Place { [weak self] in self?.unanswered -= 1 }
            // A push that is let go of takes the call with it, and that is answered with an error then.
            tell(.push(ReceivedPush(payload) { AgentQueue.async { place.reply(call, [acknowledgement]) } }))
        } catch {
            // A second try would go no better, and the pushes behind this one would wait for it.
            call.reply([acknowledgement])
            fail(.unreadable(registration.type, reason: "\(error)"))
        }
    }

    /// Dialtone's distributor names a registration's type in each call, if it is not the one that was asked for.
    private func noteDemotion(_ registration: Registration, _ arguments: [String: BusValue]) {
        guard registration.type == .voIP else { return }
        let isDemoted = arguments["org.dialtone.type"]?.text == PushType.standard.rawValue
        if isDemoted, !isToldDemoted { fail(.demoted) }
        isToldDemoted = isDemoted
    }

    /// A place among the unanswered, until the last reference to it goes.
    private final class Place: Sendable {
        private let leave: @Sendable @AgentQueue () -> Void

        init(_ leave: @escaping @Sendable @AgentQueue () -> Void) { self.leave = leave }

        deinit { AgentQueue.async(leave) }

        @AgentQueue func reply(_ call: BusCall, _ values: [BusValue]) { call.reply(values) }
    }

    private func takeEndpoint(_ arguments: [String: BusValue]) {
        guard var registration = arguments["token"]?.text.flatMap(registrations.named),
            let endpoint = arguments["endpoint"]?.text, Registration.isEndpoint(endpoint)
        else { return }
        noteDemotion(registration, arguments)
        registration.endpoint = endpoint
        guard keep(registration.type, registration), let credentials = registration.credentials,
            told[registration.type] != credentials
        else { return }
        told[registration.type] = credentials
        tell(.credentials(credentials))
    }

    private func takeEnd(_ arguments: [String: BusValue]) {
        guard let registration = arguments["token"]?.text.flatMap(registrations.named),
            keep(registration.type, nil)
        else { return }
        tell(.invalidated(registration.type))
    }
}
