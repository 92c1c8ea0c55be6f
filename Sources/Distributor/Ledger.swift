// SPDX-License-Identifier: Apache-2.0

internal import DequeModule
internal import OrderedCollections

/// What outlives the process, as tables, and what of it is not saved yet.
///
/// What is not saved is known by name and not by change, so that it stays bounded however long nothing can be saved.
struct Ledger: Sendable {
    private(set) var server: ServerName?
    private(set) var registrations: [Int64: Registration] = [:]
    private(set) var messages: [Int64: StoredMessage] = [:]
    private(set) var settled: [Origin: SettledMessage] = [:]
    /// The oldest first.
    private(set) var settledOrder: Deque<SettledMessage> = []
    private(set) var endings: OrderedDictionary<Upstream, Ending> = [:]
    /// What the servers remember that is not saved.
    private var memories: [ServerName: [UInt8]] = [:]

    private var byUpstream: [Upstream: Int64] = [:]
    private var byToken: [Token: Int64] = [:]
    private var byOrigin: [Origin: Int64] = [:]
    private(set) var apps: [AppIdentity: Usage] = [:]
    /// What the apps of one account take up together (``AppIdentity/account``).
    private var accounts: [String: Usage] = [:]
    /// What waits for all apps together.
    private(set) var usage = Usage()

    private var nextRegistration: Int64 = 1
    private var nextMessage: Int64 = 1
    private var nextSettled: Int64 = 1
    private var unsaved = Unsaved()

    /// A registration by its name at a server.
    struct Upstream: Hashable, Sendable {
        var server: ServerName
        var id: RegistrationID
    }

    /// A registration by an app's name for it.
    struct Token: Hashable, Sendable {
        var app: AppIdentity
        var token: String
    }

    /// A message by its names at a server.
    struct Origin: Hashable, Sendable {
        var server: ServerName
        var origin: MessageOrigin
    }

    /// What one app, or all of them, take up.
    struct Usage: Hashable, Sendable {
        var registrations: Set<Int64> = []
        var messages = 0
        var bytes = 0
    }

    /// The names of what is not saved.
    private struct Unsaved: Hashable, Sendable {
        var server = false
        var registrations: Set<Int64> = []
        var messages: Set<Int64> = []
        var endings: Set<Upstream> = []
        /// Of what was settled, all from this number on.
        var settledFrom: Int64 = 1
        /// Of what was settled, all up to this number is gone.
        var settledUpTo: Int64?
    }

    /// Nothing is kept.
    init() {}

    /// `nil` is not saved, since each start reads the server from the configuration.
    mutating func use(_ server: ServerName?) {
        self.server = server
        unsaved.server = server != nil
    }

    mutating func remember(_ memory: [UInt8], of server: ServerName) { memories[server] = memory }

    /// What came with messages that are not kept is not kept either.
    mutating func forgetMemory(of server: ServerName) { memories[server] = nil }

    /// What an app takes up, with all others that share its room.
    func usage(of app: AppIdentity) -> Usage { accounts[app.account] ?? Usage() }

    // MARK: Registrations

    func registration(at server: ServerName, _ id: RegistrationID) -> Registration? {
        byUpstream[Upstream(server: server, id: id)].flatMap { registrations[$0] }
    }

    func registration(of app: AppIdentity, _ token: String) -> Registration? {
        byToken[Token(app: app, token: token)].flatMap { registrations[$0] }
    }

    /// The number for the next registration.
    mutating func newRegistrationNumber() -> Int64 {
        defer { nextRegistration += 1 }
        return nextRegistration
    }

    /// Adds a registration, or puts it in the place of the one of its number, whose app and token are the same.
    mutating func put(_ registration: Registration) {
        let number = registration.number
        if let old = registrations[number], old.server != registration.server || old.id != registration.id {
            byUpstream[Upstream(server: old.server, id: old.id)] = nil
        }
        byUpstream[Upstream(server: registration.server, id: registration.id)] = number
        byToken[Token(app: registration.request.app, token: registration.request.token)] = number
        apps[registration.request.app, default: Usage()].registrations.insert(number)
        accounts[registration.request.app.account, default: Usage()].registrations.insert(number)
        registrations[number] = registration
        unsaved.registrations.insert(number)
    }

    /// Removes a registration none of whose messages is left.
    mutating func remove(_ registration: Registration) {
        registrations[registration.number] = nil
        byUpstream[Upstream(server: registration.server, id: registration.id)] = nil
        let app = registration.request.app
        byToken[Token(app: app, token: registration.request.token)] = nil
        apps[app]?.registrations.remove(registration.number)
        if apps[app]?.registrations.isEmpty == true { apps[app] = nil }
        accounts[app.account]?.registrations.remove(registration.number)
        if accounts[app.account]?.registrations.isEmpty == true { accounts[app.account] = nil }
        unsaved.registrations.insert(registration.number)
    }

    /// Takes back a registration that was never saved.
    mutating func takeBack(_ registration: Registration) {
        remove(registration)
        unsaved.registrations.remove(registration.number)
    }

    // MARK: Messages

    func message(_ origin: Origin) -> StoredMessage? { byOrigin[origin].flatMap { messages[$0] } }

    /// The number for the next message.
    mutating func newMessageNumber() -> Int64 {
        defer { nextMessage += 1 }
        return nextMessage
    }

    /// Adds a message of a registration that is there.
    mutating func add(_ message: StoredMessage) {
        messages[message.number] = message
        byOrigin[message.key] = message.number
        count(message, 1)
        unsaved.messages.insert(message.number)
    }

    /// Puts a message in the place of the same one.
    mutating func update(_ message: StoredMessage) {
        messages[message.number] = message
        unsaved.messages.insert(message.number)
    }

    private mutating func remove(_ message: StoredMessage) {
        guard messages.removeValue(forKey: message.number) != nil else { return }
        byOrigin[message.key] = nil
        count(message, -1)
        unsaved.messages.insert(message.number)
    }

    private mutating func count(_ message: StoredMessage, _ sign: Int) {
        usage.messages += sign
        usage.bytes += sign * message.body.count
        guard let app = registrations[message.registration]?.request.app else { return }
        accounts[app.account]?.messages += sign
        accounts[app.account]?.bytes += sign * message.body.count
    }

    /// Takes back a message that was never saved.
    mutating func takeBack(_ message: StoredMessage) {
        remove(message)
        unsaved.messages.remove(message.number)
    }

    /// The message waits no longer.
    mutating func settle(_ message: StoredMessage, givenUp: String?, at time: WallTime, _ limits: DistributorLimits) {
        remove(message)
        add(
            SettledMessage(
                number: nextSettled, server: message.server, origin: message.origin, time: time, givenUp: givenUp))
        let oldest = time.advanced(by: .zero - limits.settledAge)
        while let first = settledOrder.first, settledOrder.count > limits.settled || first.time < oldest {
            unsaved.settledUpTo = first.number
            settledOrder.removeFirst()
            settled[first.key] = nil
        }
    }

    private mutating func add(_ message: SettledMessage) {
        settled[message.key] = message
        settledOrder.append(message)
        nextSettled = max(nextSettled, message.number + 1)
    }

    /// What was settled and is not saved.
    var unsavedSettled: [SettledMessage] {
        var found: [SettledMessage] = []
        for message in settledOrder.reversed() {
            if message.number < unsaved.settledFrom { break }
            found.append(message)
        }
        return found.reversed()
    }

    func isSaved(_ message: SettledMessage) -> Bool { message.number < unsaved.settledFrom }

    func isSaved(_ registration: Registration) -> Bool { !unsaved.registrations.contains(registration.number) }

    func isSaved(_ ending: Ending) -> Bool { !unsaved.endings.contains(ending.key) }

    // MARK: Endings

    mutating func put(_ ending: Ending) {
        endings[ending.key] = ending
        unsaved.endings.insert(ending.key)
    }

    mutating func remove(_ ending: Ending) {
        endings[ending.key] = nil
        unsaved.endings.insert(ending.key)
    }

    // MARK: Saving

    /// What is to be saved, in one transaction.
    var changes: [StoreChange] {
        var changes: [StoreChange] = []
        if unsaved.server, let server { changes.append(.server(server)) }
        changes += memories.sorted { $0.key < $1.key }.map { .memory($0.key, $0.value) }
        changes += unsaved.registrations.sorted().map { number in
            registrations[number].map { .registration($0) } ?? .registrationRemoved(number)
        }
        changes += unsaved.messages.sorted().map { number in
            messages[number].map { .message($0) } ?? .messageRemoved(number)
        }
        changes += unsavedSettled.map { .settled($0) }
        if let last = unsaved.settledUpTo { changes.append(.settledRemoved(upTo: last)) }
        changes += unsaved.endings.sorted { ($0.server, $0.id.text) < ($1.server, $1.id.text) }.map { key in
            endings[key].map { .ending($0) } ?? .endingRemoved(key.server, key.id)
        }
        return changes
    }

    /// Whether there is something to save.
    var hasChanges: Bool {
        unsaved.server || !memories.isEmpty || !unsaved.registrations.isEmpty || !unsaved.messages.isEmpty
            || unsaved.settledFrom < nextSettled || unsaved.settledUpTo != nil || !unsaved.endings.isEmpty
    }

    /// All of ``changes`` is saved.
    mutating func saved() {
        unsaved = Unsaved()
        unsaved.settledFrom = nextSettled
        memories = [:]
    }
}

extension Ledger {
    /// Numbers of rows that are counted on from; what is beyond was not made here.
    private static let numbers: ClosedRange<Int64> = 1...(1 << 62)

    /// The tables of a state. What does not belong together is left out, and removed by the next changes.
    init(_ state: StoredState) {
        self.init()
        server = state.server
        var strays = Unsaved()
        for registration in state.registrations {
            let number = registration.number
            let isKnown =
                registrations[number] != nil || self.registration(at: registration.server, registration.id) != nil
                || self.registration(of: registration.request.app, registration.request.token) != nil
            if isKnown || !Self.numbers.contains(number) {
                if registrations[number] == nil { strays.registrations.insert(number) }
                continue
            }
            put(registration)
            nextRegistration = max(nextRegistration, number + 1)
        }
        for message in state.settled.sorted(by: { $0.number < $1.number }) where Self.numbers.contains(message.number) {
            add(message)
        }
        for message in state.messages.sorted(by: { $0.number < $1.number }) {
            let isKnown = byOrigin[message.key] != nil || settled[message.key] != nil
            if isKnown || registrations[message.registration] == nil || !Self.numbers.contains(message.number) {
                if messages[message.number] == nil { strays.messages.insert(message.number) }
                continue
            }
            add(message)
            nextMessage = max(nextMessage, message.number + 1)
        }
        for ending in state.endings { put(ending) }
        saved()
        unsaved.registrations = strays.registrations
        unsaved.messages = strays.messages
    }
}

extension SettledMessage {
    var key: Ledger.Origin { Ledger.Origin(server: server, origin: origin) }
}

extension StoredMessage {
    var key: Ledger.Origin { Ledger.Origin(server: server, origin: origin) }
}

extension Ending {
    var key: Ledger.Upstream { Ledger.Upstream(server: server, id: id) }
}
