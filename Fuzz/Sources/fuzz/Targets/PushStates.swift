// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus

@testable internal import DialtoneConfiguration
@testable internal import DialtoneDistributor
@testable internal import DialtoneSession
@testable internal import DialtoneTOML

extension FuzzTarget {
    /// What apps give to Register, what files say of them, and the user's configuration.
    static let sessions = FuzzTarget(name: "sessions") { bytes in
        var draw = Draw(bytes)
        let text = Array(bytes.dropFirst()).text
        switch draw.below(4) {
        case 0: _ = Sandbox.flatpak(text)?.mayOwn("org.example.App")
        case 1: _ = (Sandbox.snap(label: text), Sandbox.snap(group: text))
        case 2:
            guard let entries = try? TOMLDocument.parse(text) else { return }
            var root = TableReader(
                entries, of: "session.toml", at: TOMLPosition(line: 1, column: 1), path: "", ConfigurationReport())
            guard let settings = root.table("push").flatMap({ PushSettings($0) }) else { return }
            _ = (try? settings.makeServer(memory: nil), settings.tls, settings.name)
        default:
            var entries: [String: BusValue] = [:]
            for key in ["service", "token", "description", "vapid", "org.dialtone.type"] {
                entries[key] = draw.maybe { $0.chance() ? .string($0.text()) : .uint32(1) }
            }
            guard let asked = try? RegistrationArguments(entries) else { return }
            precondition(DistributorLimits.token.contains(asked.token.utf8.count), "a token")
            precondition(DistributorLimits.summary.contains(asked.summary.utf8.count), "a description")
            let first = try? RegistrationArguments(service: asked.service, token: asked.token, description: draw.text())
            precondition(DistributorLimits.summary.contains(first?.summary.utf8.count ?? 0), "a description")
        }
    }

    /// What an earlier process left, of whatever numbers and times, and what follows of it.
    static let distributor = FuzzTarget(name: "distributor") { bytes in
        var draw = Draw(bytes)
        guard let server = ServerName("north"), let id = RegistrationID(String(repeating: "1", count: 32)) else {
            return
        }
        func time(_ draw: inout Draw) -> WallTime { WallTime(milliseconds: Int64(draw.number())) }
        var state = StoredState()
        state.server = server
        state.registrations = draw.several(3) { draw in
            let app = AppIdentity(name: "org.example.\(draw.below(2))", sandbox: draw.chance() ? "snap:x" : nil)
            var registration = Registration(
                number: Int64(draw.number()),
                request: .init(
                    app: app, token: "\(draw.below(2))", version: .v2, kind: draw.pick(PushKind.allCases), summary: "",
                    vapid: nil), server: server,
                id: RegistrationID(String(repeating: "\(draw.below(3))", count: 32)) ?? id)
            registration.endpoint = draw.chance() ? "https://push.test/" : nil
            (registration.registered, registration.expires) = (draw.maybe(time), draw.maybe(time))
            (registration.unknownSince, registration.lastMessage) = (draw.maybe(time), draw.maybe(time))
            (registration.isTold, registration.misses) = (draw.chance(), Int(draw.byte()))
            return registration
        }
        func origin(_ draw: inout Draw) -> MessageOrigin? {
            ServerMessageID("\(draw.below(4))").map { MessageOrigin(registration: id, id: $0) }
        }
        for _ in 0..<draw.below(4) {
            guard let origin = origin(&draw) else { return }
            state.messages.append(
                .init(
                    number: Int64(draw.number()), registration: state.registrations.first?.number ?? 1, server: server,
                    origin: origin, body: [1], urgency: .normal, arrived: time(&draw), expires: time(&draw)))
            state.settled.append(
                .init(number: Int64(draw.number()), server: server, origin: origin, time: time(&draw), givenUp: nil))
            state.endings.append(
                .init(
                    server: server, id: id, endpoint: nil, registration: draw.maybe { Int64($0.number()) },
                    due: time(&draw)))
        }
        var distributor = Distributor(state: state, random: Draw([]))
        var (uptime, wall, attempts) = (Duration.seconds(1000), Int64(1_800_000_000_000), [UInt64]())
        while !draw.isOver {
            let input: DistributorInput
            switch draw.below(8) {
            case 0: input = .busConnected
            case 1: input = .reported(server, .loggedIn)
            case 2: input = .reported(server, .registered(id, endpoint: "https://a.test", expires: draw.maybe(time)))
            case 3:
                guard let message = ServerMessageID("\(draw.below(4))") else { return }
                input = .arrived(
                    server,
                    [.init(id: message, registration: id, body: [1], urgency: .high, expires: draw.maybe(time))],
                    memory: nil)
            case 4:
                guard !attempts.isEmpty else { continue }
                input = .answered(attempt: draw.pick(attempts), draw.pick([.taken, .unanswered, .unknown]))
            case 5:
                // Somebody sets the clock.
                wall = Int64(draw.number())
                input = .timePassed
            case 6: input = draw.pick([.suspending, .resumed])
            default:
                uptime += .seconds(Int(draw.byte()) * 60)
                input = .timePassed
            }
            let turn = distributor.take(input, at: Moment(uptime: uptime, wall: WallTime(milliseconds: wall)))
            for case .tell(let call) in turn.effects { attempts.append(call.attempt) }
            if draw.chance(), !turn.changes.isEmpty {
                _ = distributor.saveFailed("full", at: Moment(uptime: uptime, wall: WallTime(milliseconds: wall)))
            }
            _ = distributor.overview
        }
    }
}
