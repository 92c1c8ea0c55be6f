// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneBus
internal import DialtonePlatform
internal import Glibc

/// What the bus itself can be asked (D-Bus specification, "Message Bus Messages"): names and who has them.
extension BusConnection {
    nonisolated static let driver = "org.freedesktop.DBus"
    private nonisolated static let driverPath = "/org/freedesktop/DBus"

    // MARK: A name of ours

    /// How it stands with a name of ours.
    package enum NameState: Hashable, Sendable {
        /// It is ours.
        case owned
        /// Another program has it. It is ours once that gives it up.
        case waiting
        /// The bus does not give it.
        case refused(BusFailure)
    }

    /// A name that is asked for at each connection.
    final class OwnedName {
        let name: String
        let changed: @AgentQueue (NameState) -> Void
        var told: NameState?

        init(_ name: String, _ changed: @escaping @AgentQueue (NameState) -> Void) {
            (self.name, self.changed) = (name, changed)
        }

        @AgentQueue
        func tell(_ state: NameState) {
            guard state != told else { return }
            told = state
            changed(state)
        }
    }

    /// Asks for a name, on this connection and on each that follows it, and waits in line where another has it.
    ///
    /// - Parameter changed: is called with how it stands, when it is known and at each change; again at each new
    ///   connection. The loss of a connection is the connection's own news.
    package func own(_ name: String, _ changed: @escaping @AgentQueue (NameState) -> Void) {
        let owned = OwnedName(name, changed)
        names.append(owned)
        if isConnected { request(owned) }
    }

    func request(_ owned: OwnedName) {
        owned.told = nil
        for (member, state) in [("NameAcquired", NameState.owned), ("NameLost", .waiting)] {
            subscribe("type='signal',sender='\(Self.driver)',member='\(member)',arg0='\(owned.name)'") { _ in
                owned.tell(state)
            }
        }
        callDriver("RequestName", [owned.name], filling: { $0.uint32(0) }) { answer in
            switch answer.map({ $0.uint32() }) {
            // DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER, and ALREADY_OWNER.
            case .success(1), .success(4): owned.tell(.owned)
            // IN_QUEUE: the only other answer to a request without flags.
            case .success: owned.tell(.waiting)
            case .failure(.disconnected): break
            case .failure(let failure): owned.tell(.refused(failure))
            }
        }
    }

    // MARK: Names of others

    /// Whether this is a name that a connection can have, a unique one among them (D-Bus specification, "Bus names").
    package nonisolated static func isServiceName(_ name: String) -> Bool { sd_bus_service_name_is_valid(name) > 0 }

    /// The path of an object that is called so, sd_bus_path_encode(3); `nil` below what is no path.
    package nonisolated static func path(of name: String, below prefix: String) -> String? {
        var path: UnsafeMutablePointer<CChar>?
        guard sd_bus_path_encode(prefix, name, &path) >= 0, let path else { return nil }
        defer { free(path) }
        return String(cString: path)
    }

    /// Calls `handler` each time that `service` has another owner, or none any more: with the unique name of its
    /// connection.
    package func followOwner(of service: String, _ handler: @escaping @AgentQueue (String?) -> Void) {
        subscribe(Self.ownerRule(service)) { Self.take($0, handler) }
    }

    /// As ``followOwner(of:_:)``, until the end of what is returned; `nil` without a connection.
    package func followingOwner(
        of service: String, _ handler: @escaping @AgentQueue (String?) -> Void
    ) -> Subscription? {
        follow(Self.ownerRule(service)) { Self.take($0, handler) }
    }

    private nonisolated static func ownerRule(_ service: String) -> String {
        "type='signal',sender='\(driver)',interface='\(driver)',member='NameOwnerChanged',arg0='\(service)'"
    }

    private static func take(_ message: BusMessage, _ handler: @AgentQueue (String?) -> Void) {
        guard message.string() != nil, message.string() != nil, let owner = message.string() else { return }
        handler(owner.isEmpty ? nil : owner)
    }

    /// Asks for the unique name of the connection that owns a name; `nil` where none does.
    package func owner(
        of name: String, _ handler: @escaping @AgentQueue (Result<String?, BusFailure>) -> Void
    ) {
        callDriver("GetNameOwner", [name]) { answer in
            if case .failure(.refusedByBus(BusFailure.Name.nameHasNoOwner, _)) = answer {
                return handler(.success(nil))
            }
            handler(answer.map { $0.string() })
        }
    }

    /// Asks whether anybody owns a name.
    package func hasOwner(_ name: String, _ handler: @escaping @AgentQueue (Result<Bool, BusFailure>) -> Void) {
        callDriver("NameHasOwner", [name]) { answer in handler(answer.map { $0.boolean() ?? false }) }
    }

    /// Asks for the names that the bus can start services of.
    package func activatableNames(_ handler: @escaping @AgentQueue (Result<Set<String>, BusFailure>) -> Void) {
        callDriver("ListActivatableNames") { answer in
            handler(
                answer.map { message in
                    var names: Set<String> = []
                    message.forEach(in: "s") { message.string().map { _ = names.insert($0) } != nil }
                    return names
                })
        }
    }

    /// Has the bus start the service of a name, unless it runs; answers when its name is owned.
    package func start(
        _ service: String, limit: Duration? = nil,
        _ handler: @escaping @AgentQueue (Result<Void, BusFailure>) -> Void
    ) {
        callDriver("StartServiceByName", [service], limit: limit, filling: { $0.uint32(0) }) { answer in
            handler(answer.map { _ in })
        }
    }

    /// Who is behind a name.
    package struct Credentials: Sendable {
        /// The user.
        package var user: UInt32?
        /// The number of the process that connected. It may have ended since, and the number be another's.
        package var process: UInt32?
    }

    /// Asks who connected, as the kernel told the bus (`GetConnectionCredentials`).
    package func credentials(
        of name: String, _ handler: @escaping @AgentQueue (Result<Credentials, BusFailure>) -> Void
    ) {
        callDriver("GetConnectionCredentials", [name]) { answer in
            handler(
                answer.map { message in
                    var credentials = Credentials()
                    message.forEachProperty(["UnixUserID": "u", "ProcessID": "u"]) { name in
                        if name == "UnixUserID" {
                            credentials.user = message.uint32()
                        } else {
                            credentials.process = message.uint32()
                        }
                    }
                    return credentials
                })
        }
    }

    private func callDriver(
        _ method: String, _ arguments: [String] = [], limit: Duration? = nil,
        filling fill: @AgentQueue (BusArguments) -> Void = { _ in },
        _ handler: @escaping @AgentQueue (Result<BusMessage, BusFailure>) -> Void
    ) {
        call(
            Self.driver, Self.driverPath, Self.driver, method, arguments, limit: limit, filling: fill, handler)
    }
}
