// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtoneDistributor
package import DialtonePlatform
internal import Glibc

/// The distributor's face on the user's bus, as UnifiedPush says (`dbus.md`, DBUS_0.3.0; versions 2 and 1): apps
/// register here, and are called here.
///
/// Whoever calls is held against the bus and the kernel: an app registers names that it owns, and ends registrations of
/// names that it owns.
@AgentQueue
package final class AppBus {
    /// The name by which apps find this distributor.
    package nonisolated static let name = "org.unifiedpush.Distributor.Dialtone"
    /// The distributor's object.
    package nonisolated static let path = "/org/unifiedpush/Distributor"

    /// Calls of one sender that wait for an answer: an app registers for an account each at its start.
    static let mostCallsOfSender = 16
    /// Calls of all senders that wait. Each is some hundred bytes, whatever came with it.
    static let mostCalls = 256

    private weak var owner: (any AppBusOwner)?
    private let now: @AgentQueue () -> Duration
    private var registrations = RegistrationPacer()
    private var refusals: RefusalPacer
    private(set) var bus: BusConnection?
    /// How many calls of each sender wait.
    private var waiting: [String: Int] = [:]
    private var names: Set<String> = []
    private var follows: [String: BusConnection.Subscription] = [:]
    /// Those that somebody owns.
    private var present: Set<String> = []
    /// Who was seen last with an app's name: at most one for each app that is registered.
    var known: [String: Known] = [:]

    /// A connection, and the sandbox that its program is in.
    struct Known: Hashable {
        var owner: String
        var sandbox: String?
    }

    /// Connects as soon as there is a bus, and serves from then on.
    ///
    /// - Parameters:
    ///   - address: where the bus is, in D-Bus's form (``BusConnection/sessionAddress``).
    ///   - now: the clock that callers are paced by.
    package init(
        address: String, owner: any AppBusOwner, now: @escaping @AgentQueue () -> Duration = { BootClock.now() }
    ) {
        self.owner = owner
        self.now = now
        refusals = RefusalPacer(at: now())
        let bus = BusConnection(address: address) { [weak self] in
            self?.connected()
        } lost: { [weak self] in
            self?.lost()
        }
        self.bus = bus
        bus.serve(Self.path, Self.interfaces { [weak self] in self })
        bus.own(Self.name) { [weak self] in self?.owner?.nameChanged($0) }
    }

    private func connected() {
        for name in names { follow(name) }
        owner?.busConnected()
    }

    private func lost() {
        (follows, present, known) = ([:], [], [:])
        owner?.busLost()
    }

    // MARK: Apps that come and go

    /// Follows these bus names of apps and no others, and tells which of them come and go. Those that are there already
    /// are told as well, later.
    package func follow(_ names: Set<String>) {
        for name in self.names.subtracting(names) {
            follows[name] = nil
            present.remove(name)
        }
        let new = names.subtracting(self.names)
        self.names = names
        if bus?.isConnected == true { for name in new { follow(name) } }
    }

    private func follow(_ name: String) {
        // It becomes part of a rule, in which a quote would end it.
        guard BusConnection.isServiceName(name) else { return }
        follows[name] = bus?.followingOwner(of: name) { [weak self] in self?.take(name, isPresent: $0 != nil) }
        bus?.hasOwner(name) { [weak self] answer in
            if case .success(true) = answer { self?.take(name, isPresent: true) }
        }
    }

    private func take(_ name: String, isPresent: Bool) {
        guard names.contains(name), isPresent != present.contains(name) else { return }
        if isPresent {
            present.insert(name)
            owner?.appAppeared(name)
        } else {
            present.remove(name)
            owner?.appVanished(name)
        }
    }

    // MARK: Calls of apps

    /// The two versions of the interface. The names of arguments are the specification's.
    nonisolated static func interfaces(_ bus: @escaping @AgentQueue () -> AppBus?) -> [BusInterface] {
        let second = BusInterface(
            "org.unifiedpush.Distributor2",
            [
                .init("Register", [.init("args", "a{sv}")], returns: [.init("res", "a{sv}")]) { bus()?.register2($0) },
                .init("Unregister", [.init("args", "a{sv}")], returns: [.init("res", "a{sv}")]) {
                    bus()?.unregister($0, token: $0.arguments.first?.dictionary?["token"]?.text, [.dictionary([:])])
                },
            ])
        let first = BusInterface(
            "org.unifiedpush.Distributor1",
            [
                .init(
                    "Register", ["serviceName", "token", "description"].map { .init($0, "s") },
                    returns: ["registrationResult", "registrationResultReason"].map { .init($0, "s") }
                ) { bus()?.register1($0) },
                .init("Unregister", [.init("token", "s")], hasNoReply: true) {
                    bus()?.unregister($0, token: $0.arguments.first?.text, [])
                },
            ])
        return [second, first]
    }

    private func register2(_ call: BusCall) {
        register(call) { () throws(RegistrationArguments.Fault) in
            try RegistrationArguments(call.arguments.first?.dictionary ?? [:])
        } reply: { result, reason in
            var entries = ["success": BusValue.string(result)]
            if let reason { entries["reason"] = .string(reason) }
            call.reply([.dictionary(entries)])
        }
    }

    private func register1(_ call: BusCall) {
        let texts = call.arguments.compactMap(\.text)
        register(call) { () throws(RegistrationArguments.Fault) in
            guard texts.count == 3 else { throw .init(text: "an argument is missing") }
            return try RegistrationArguments(service: texts[0], token: texts[1], description: texts[2])
        } reply: { result, reason in
            call.reply([.string(result), .string(reason ?? "")])
        }
    }

    private func register(
        _ call: BusCall, _ arguments: () throws(RegistrationArguments.Fault) -> RegistrationArguments,
        reply: @escaping @AgentQueue (String, String?) -> Void
    ) {
        guard let place = Place(call.sender, self) else { return refuseForRoom(call) }
        let answer: @AgentQueue (RegistrationAnswer) -> Void = { answer in
            withExtendedLifetime(place) {
                switch answer {
                case .succeeded: reply("REGISTRATION_SUCCEEDED", nil)
                case .failed(let failure, _): reply("REGISTRATION_FAILED", failure.rawValue)
                }
            }
        }
        let sender = call.sender
        let asked: RegistrationArguments
        do throws(RegistrationArguments.Fault) {
            asked = try arguments()
        } catch {
            refused("\(sender) called Register, and \(error.text)")
            return answer(.failed(.internalError, error.text))
        }
        verify(sender, asIdentityFor: asked.service) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let identity):
                let request = RegistrationRequest(
                    app: identity, token: asked.token, version: asked.version, kind: asked.kind,
                    summary: asked.summary, vapid: asked.vapid)
                guard owner?.isRegistered(request) == true || registrations.admits(identity, at: now()) else {
                    let why = "too much is registered at a time, by it or by all"
                    refused("\(sender) called Register for \(identity.name): \(why)")
                    return answer(.failed(.internalError, why))
                }
                owner?.registerAsked(request, answer: answer)
            case .failure(let refusal):
                let name = String(asked.service.prefix(64)).printable
                refused("\(sender) called Register for \(name): \(refusal.text)")
                answer(.failed(.unauthorized, refusal.text))
            }
        }
    }

    /// Ends the registration of this token that is the caller's. A caller that has none learns nothing else than one
    /// that had one.
    private func unregister(_ call: BusCall, token: String?, _ reply: [BusValue]) {
        guard let place = Place(call.sender, self) else { return refuseForRoom(call) }
        guard let token, DistributorLimits.token.contains(token.utf8.count) else {
            refused("\(call.sender) called Unregister without a token of 1 to 100 bytes")
            return call.reply(reply)
        }
        let candidates = owner?.apps(registeredAs: token) ?? []
        find(call.sender, among: candidates[...]) { [weak self] app in
            withExtendedLifetime(place) {
                if let app {
                    self?.owner?.unregisterAsked(app, token: token)
                } else if !candidates.isEmpty {
                    self?.refused("\(call.sender) called Unregister for a registration of another app")
                }
                call.reply(reply)
            }
        }
    }

    private func refuseForRoom(_ call: BusCall) {
        refused("\(call.sender) calls faster than it is answered")
        call.fail(BusFailure.Name.limitsExceeded, "too many calls wait for their answer; wait for these first")
    }

    /// A caller was refused, which is told unless many were a moment ago.
    private func refused(_ why: String) {
        guard let leftOut = refusals.admit(at: now()) else { return }
        owner?.callerRefused(leftOut == 0 ? why : "\(why) (and \(leftOut) others since the last that was told)")
    }

    /// The place that a call has until it is answered or nobody holds it any more.
    @AgentQueue
    private final class Place {
        private let sender: String
        private weak var bus: AppBus?

        init?(_ sender: String, _ bus: AppBus) {
            let count = bus.waiting[sender] ?? 0
            guard count < AppBus.mostCallsOfSender, bus.waiting.values.reduce(0, +) < AppBus.mostCalls else {
                return nil
            }
            bus.waiting[sender] = count + 1
            (self.sender, self.bus) = (sender, bus)
        }

        isolated deinit {
            guard let bus, let count = bus.waiting[sender] else { return }
            bus.waiting[sender] = count > 1 ? count - 1 : nil
        }
    }

    // MARK: Who calls

    struct Refusal: Error {
        let text: String
    }

    /// Finds out who a caller is that says it owns a name.
    private func verify(
        _ sender: String, asIdentityFor service: String,
        _ handler: @escaping @AgentQueue (Result<AppIdentity, Refusal>) -> Void
    ) {
        guard BusConnection.isServiceName(service), !service.hasPrefix(":") else {
            return handler(.failure(Refusal(text: "this is no bus name of an app")))
        }
        sandbox(of: sender) { [weak self] result in
            let sandbox: Sandbox
            switch result {
            case .failure(let refusal): return handler(.failure(refusal))
            case .success(let seen): sandbox = seen
            }
            guard sandbox.mayOwn(service) else {
                return handler(.failure(Refusal(text: "\(sandbox.name ?? "") may not own this name")))
            }
            // Last: what was looked at was its process, unless it was gone by then, and it is still there.
            self?.bus?.owner(of: service) { answer in
                switch answer {
                case .success(sender): handler(.success(AppIdentity(name: service, sandbox: sandbox.name)))
                case .success(.some): handler(.failure(Refusal(text: "another program owns this name")))
                case .success(nil): handler(.failure(Refusal(text: "the caller does not own this name")))
                case .failure(let failure): handler(.failure(Refusal(text: "\(failure)")))
                }
            }
        }
    }

    /// Finds out which sandbox the program behind a unique name is in.
    func sandbox(of sender: String, _ handler: @escaping @AgentQueue (Result<Sandbox, Refusal>) -> Void) {
        bus?.credentials(of: sender) { answer in
            switch answer {
            case .failure(let failure): handler(.failure(Refusal(text: "\(failure)")))
            case .success(let credentials):
                guard credentials.user == geteuid(), let process = credentials.process else {
                    return handler(.failure(Refusal(text: "it is another user's")))
                }
                do throws(Sandbox.Unseen) {
                    handler(.success(try Sandbox.of(process)))
                } catch {
                    handler(.failure(Refusal(text: error.text)))
                }
            }
        }
    }

    /// Finds which of these apps a caller is.
    private func find(
        _ sender: String, among candidates: ArraySlice<AppIdentity>,
        _ handler: @escaping @AgentQueue (AppIdentity?) -> Void
    ) {
        guard let first = candidates.first else { return handler(nil) }
        verify(sender, asIdentityFor: first.name) { [weak self] result in
            if case .success(first) = result { return handler(first) }
            self?.find(sender, among: candidates.dropFirst(), handler)
        }
    }
}
