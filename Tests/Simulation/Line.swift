// SPDX-License-Identifier: Apache-2.0

import DialtoneCoalescing
import DialtoneTestSupport

@testable import DialtoneConnection

/// What is under way on a flow, as far as its driver knows.
struct Line {
    /// How many keepalives are under way whose answer is looked for, and when the last was sent.
    var awaited = 0
    var sentAt = Duration.zero
    /// Since when bytes of ours wait for their acknowledgement.
    var unacknowledged: Duration?
}

// Keepalives as the driver sends them: not behind bytes that nobody read, not while the server's kernel owes an
// acknowledgement, and no second one before the first was answered or given up.

extension Simulation {
    mutating func scheduleBeat(_ epoch: UInt64) {
        pending.removeAll { if case .beat(epoch) = $0.happening { true } else { false } }
        guard let cadence = heartbeats[epoch]?.cadence else { return }
        let early = cadence.tolerance * (Double(random.below(100)) / 100)
        later(cadence.interval - early, .beat(epoch: epoch))
    }

    /// The time for a keepalive has come.
    mutating func beat(_ epoch: UInt64) throws {
        scheduleBeat(epoch)
        guard send(on: epoch, isVerification: false) else { return try awaitDelivery(on: epoch) }
        try tell(.probeSent(epoch: epoch))
        answer(epoch)
    }

    /// What was sent before waits for its acknowledgement, which comes in time where the server can be heard.
    private mutating func awaitDelivery(on epoch: UInt64) throws {
        guard heartbeats[epoch] != nil, lines[epoch]?.unacknowledged != nil || random.chance(5) else { return }
        try tell(.undelivered(epoch: epoch))
        let time = checker.known.life.figures.answerDeadline - .milliseconds(1)
        later(
            random.chance(50) ? time : .milliseconds(300),
            .reply(epoch: epoch, .acknowledged(epoch: epoch, begun: now)))
    }

    /// Asks for a proof right now: with a keepalive where one may be sent, and of the kernel.
    mutating func probe(_ epoch: UInt64) {
        if send(on: epoch, isVerification: true) {
            scheduleBeat(epoch)
            backlog.append(.input(.probeSent(epoch: epoch)))
            answer(epoch)
        }
        acknowledge(epoch)
    }

    /// - Returns: whether a keepalive was sent that is answered in the stream.
    private mutating func send(on epoch: UInt64, isVerification: Bool) -> Bool {
        guard let heartbeat = heartbeats[epoch] else { return false }
        var line = lines[epoch, default: Line()]
        if reaches(epoch) { line.unacknowledged = nil }
        if now >= line.sentAt + heartbeat.answerDeadline { line.awaited = 0 }
        let isFree = line.awaited < (isVerification ? 2 : 1)
        guard !isBehindBytes(epoch), line.unacknowledged == nil, isFree else { return false }
        line.sentAt = now
        if !reaches(epoch), let timeout = checker.known.sockets[epoch]?.options.userTimeout {
            line.unacknowledged = now
            later(timeout, .userTimeout(epoch: epoch, since: now))
        }
        let isAnswered = heartbeat.kind.figures.answer == .message
        if isAnswered { line.awaited += 1 }
        lines[epoch] = line
        return isAnswered
    }

    /// Whether what is sent on a flow arrives at its host.
    private func reaches(_ epoch: UInt64) -> Bool {
        guard hears(epoch), let host = host(of: epoch) else { return false }
        return world.hosts[host] != .silent
    }

    /// The server's program answers, for one or for all that is under way.
    private mutating func answer(_ epoch: UInt64) {
        guard reaches(epoch), let host = host(of: epoch), world.hosts[host] != .hangs else { return }
        let count = random.chance(50) ? 1 : lines[epoch]?.awaited ?? 1
        later(.milliseconds(1 + random.below(900)), .reply(epoch: epoch, .answered(epoch: epoch, count: count)))
    }

    /// The server's kernel acknowledges.
    private mutating func acknowledge(_ epoch: UInt64) {
        guard reaches(epoch) else { return }
        later(.milliseconds(1 + random.below(900)), .reply(epoch: epoch, .acknowledged(epoch: epoch, begun: now)))
    }

    /// Takes an answer out of the stream, if one is looked for and it can be seen.
    mutating func isAwaited(_ input: ConnectionInput, on epoch: UInt64) -> Bool {
        guard case .answered(_, let count) = input else { return true }
        guard let line = lines[epoch], line.awaited >= count, !isBehindBytes(epoch) else { return false }
        lines[epoch]?.awaited -= count
        return true
    }

    /// Whether the kernel gives up a flow on which nothing was acknowledged since then.
    mutating func timesOut(_ epoch: UInt64, since: Duration) -> Bool {
        guard lines[epoch]?.unacknowledged == since else { return false }
        guard reaches(epoch) else { return true }
        // It was sent again when the line was back, and arrived.
        lines[epoch]?.unacknowledged = nil
        return false
    }

    /// Whether bytes that nobody has read stand before what comes next on a flow that the agent reads.
    private func isBehindBytes(_ epoch: UInt64) -> Bool {
        clients.sockets[epoch].map { $0.isWatched && $0.unread > 0 } ?? false
    }

    /// Bytes for the client come, before the answer to a keepalive if one is under way.
    mutating func receive(_ count: Int, on epoch: UInt64) throws {
        guard checker.known.ownership.session != .opening else { return }
        let isLookedFor = lines[epoch].map { $0.awaited > 0 && !isBehindBytes(epoch) } ?? false
        clients.sockets[epoch]?.received += count
        if let socket = clients.sockets[epoch], socket.isWatched {
            // Whatever else happens in a moment may be heard of before.
            let isHeardLater = random.chance(20)
            if isHeardLater {
                clients.sockets[epoch]?.isUnheard = true
                later(.milliseconds(random.below(50)), .input(.arrived(epoch: epoch)))
            } else {
                backlog.append(.input(.arrived(epoch: epoch)))
            }
            if let awaited = socket.awaitedBeyond, socket.unread > awaited {
                clients.sockets[epoch]?.awaitedBeyond = nil
                backlog.append(.client(.bytesCame))
            }
        }
        if isLookedFor {
            lines[epoch]?.awaited = 0
            acknowledge(epoch)
            backlog.insert(.input(.answerHidden(epoch: epoch)), at: 0)
        }
        try takeBacklog()
    }
}
