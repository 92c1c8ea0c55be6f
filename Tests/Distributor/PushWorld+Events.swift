// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneTestSupport

extension PushWorld {
    mutating func happen(_ event: Event) {
        switch event {
        case .login(let server): login(server)
        case .send(let server):
            send(server)
            later(random.below(4) == 0 ? 1 : random.below(4000), .send(server))
        case .redeliver(let server):
            if servers[server]?.isUp == true { handOver(server) }
        case .answer(let process, let attempt, let answer, let id):
            guard process == self.process else { return }
            if answer == .taken, let id { taken.insert(id) }
            take(.answered(attempt: attempt, answer))
        case .report(let process, let server, let report):
            guard process == self.process, servers[server]?.isUp == true else { return }
            take(.reported(name(server), report))
        case .appActs:
            actAsApp()
            later(random.below(3600), .appActs)
        case .mischief:
            beMischievous()
            later(random.below(1800), .mischief)
        }
    }

    private mutating func login(_ server: String) {
        servers[server]?.isUp = true
        if !isCalm, random.chance(15) {
            servers[server]?.endpoints = [:]
            servers[server]?.unanswered = []
            servers[server]?.identity &+= 1
        }
        let identity = servers[server]?.identity ?? 0
        if store.memories[name(server)]?.first ?? 0 != identity {
            let process = process
            take(.arrived(name(server), [], memory: [identity], identityLost: "another uaid"))
            if process != self.process { return }
        }
        take(.reported(name(server), .loggedIn))
        handOver(server)
    }

    /// What the server's value remembers: the identity, and something that changes.
    private mutating func memory(_ server: String) -> [UInt8] {
        [servers[server]?.identity ?? 0, UInt8(random.below(256))]
    }

    /// Hands over what was not answered, in some order, some of it twice.
    private mutating func handOver(_ server: String) {
        var messages = servers[server]?.unanswered ?? []
        if !isCalm, random.chance(20), messages.count > 1 {
            messages.swapAt(0, messages.count - 1)
            messages.append(messages[0])
        }
        guard !messages.isEmpty else { return }
        take(.arrived(name(server), messages, memory: random.chance(50) ? memory(server) : nil))
    }

    private mutating func send(_ server: String) {
        guard let state = servers[server] else { return }
        let ids = state.endpoints.keys.sorted { $0.text < $1.text }
        var target = ids.isEmpty ? nil : ids[random.below(ids.count)]
        if random.chance(3) { target = RegistrationID(String(repeating: "e", count: 32)) }
        guard let target else { return }
        servers[server]?.sent += 1
        guard let id = ServerMessageID("\(server)-\(state.sent)") else { return }
        let size = random.chance(2) ? 4097 : random.chance(2) ? 0 : 1 + random.below(64)
        let message = ArrivedMessage(
            id: id, registration: target, body: Array(repeating: 7, count: size),
            urgency: Urgency.allCases[random.below(4)],
            expires: random.chance(50) ? WallTime(milliseconds: wall + Int64(random.below(7200)) * 1000) : nil)
        servers[server]?.unanswered.append(message)
        guard state.isUp else { return }
        take(.arrived(name(server), [message], memory: random.chance(30) ? memory(server) : nil))
        // The same once more while the first waits.
        if random.chance(5) { take(.arrived(name(server), [message], memory: nil)) }
    }

    private mutating func actAsApp() {
        let app = AppIdentity(name: Self.apps[random.below(3)], sandbox: nil)
        let token = "token-\(random.below(3))"
        if random.chance(15) { return take(.unregister(app, token: token)) }
        let call = nextCall
        nextCall += 1
        openCalls.insert(call)
        let request = RegistrationRequest(
            app: app, token: token, version: random.chance(50) ? .v1 : .v2,
            kind: random.chance(25) ? .voip : .standard, summary: "", vapid: random.chance(90) ? nil : "key")
        take(.register(request, call: call))
    }

    private mutating func beMischievous() {
        let app = Self.apps[random.below(3)]
        let server = Self.serverNames[random.below(2)]
        switch random.below(14) {
        case 0, 1, 2: moods[app] = AppMood.allCases[random.below(AppMood.allCases.count)]
        case 3, 4: moods[app] = .good
        case 5:
            moods[app] = .good
            take(.appAppeared(app))
        case 6: storeFails.toggle()
        case 7:
            servers[server]?.isUp = false
            later(random.below(7200), .login(server))
        case 8: stepClock()
        case 9: take(random.chance(50) ? .suspending : .resumed)
        case 10:
            var conditions = PushConditions()
            conditions.isOnBattery = random.chance(50)
            conditions.batteryLevel = random.below(101)
            conditions.isExpensive = random.chance(30)
            conditions.isConstrained = random.chance(20)
            take(.conditions(conditions))
        case 11: lie(server)
        case 12:
            openCalls = []
            process += 1
            restartBus()
        default: command()
        }
    }

    private mutating func restartBus() {
        // The process goes on; what was asked over the old connection is over.
        take(.busConnected)
        for server in Self.serverNames where servers[server]?.isUp == true {
            servers[server]?.isUp = false
            later(1, .login(server))
        }
    }

    private mutating func stepClock() {
        let step = Int64([86_400_000, -86_400_000, 31_536_000_000, -31_536_000_000, 15_000][random.below(5)])
        wall += step
        clockError += step
    }

    private mutating func lie(_ server: String) {
        guard servers[server]?.isUp == true else { return }
        let ids = distributor.overview.map(\.registration.id)
        guard let stranger = RegistrationID(String(repeating: "f", count: 32)) else { return }
        let target = ids.isEmpty || random.chance(30) ? stranger : ids[random.below(ids.count)]
        let reports: [PushServerReport] = [
            .unregistered(target), .trouble("nonsense"),
            .registered(stranger, endpoint: "https://x.example", expires: nil),
            .registrationFailed(target, .internalError, "no"), .registrationsFull(target, "no"), .loginRefused("no"),
        ]
        let report = reports[random.below(reports.count)]
        if report == .loginRefused("no") {
            servers[server]?.isUp = false
            later(600, .login(server))
        }
        take(.reported(name(server), report))
    }

    private mutating func command() {
        let numbers = distributor.overview.map(\.registration.number) + [4711]
        let number = numbers[random.below(numbers.count)]
        let commands: [DistributorCommand] = [
            .test(registration: number, body: [1]), .remove(registration: number), .use(name("south")),
            .use(name("north")),
        ]
        take(.command(commands[random.below(commands.count)], call: 0))
    }
}
