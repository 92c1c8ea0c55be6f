// SPDX-License-Identifier: Apache-2.0

import NetworkPath

@testable import Supervisor

// The end of a sequence: the world heals and the connection must follow; the user closes and nothing must be left.

extension Simulation {
    /// Heals the world, all at once or all but the network before the network, and waits for `ready` within the bound.
    mutating func recover() throws {
        let byPath = random.chance(50)
        if byPath, world.link != .none { try move(to: .none) }
        world.hosts = world.hosts.map { _ in .accepts }
        // Some of the addresses may be dead; the walk has to get past them.
        for host in 0..<3 where random.chance(30) {
            world.hosts[host] = random.pick([.refuses, .silent, .isStranger, .stallsHandshake])
        }
        world.nameServer = .answers
        world.answer = [0, 1, 2, 3].filter { _ in random.chance(60) } + [3]
        if case .address = checker.known.policy.remote.host { world.hosts[0] = .accepts }
        world.supportsDNS = true
        world.hasAddress = [true, true]
        pending.removeAll { if case .kick = $0.happening { true } else { false } }
        var bound = dialBound
        if byPath {
            try move(to: .uplink(random.below(2)))
        } else {
            if checker.known.path != world.path() { try tellPath() }
            if !checker.known.hasPath { try move(to: .uplink(0)) }
            bound += waitBound
        }
        try waitUntilReady(within: bound)
        try expectCalm()
    }

    /// How long a dial takes at most once it may begin, and what the budget may put before it.
    private var dialBound: Duration {
        // A flow that stood may be kept alone, so the walk is bounded by the answer's length.
        // Each of the addresses may time out twice: connecting, and in the handshake.
        DialBudget.interval + .milliseconds(200) + (checker.known.policy.connectTimeout * 2 + .milliseconds(400)) * 5
    }

    /// How long a wait that was begun before the world healed may still last, and what the dial that ran may fail of.
    private var waitBound: Duration {
        let wait = machine.status.state == .failed ? Duration.seconds(1800) : checker.known.policy.backoff.ceiling
        // A query or a connect that was lost in the broken world runs into its deadline first; its failure waits too.
        return wait + .seconds(15) + dialBound + max(checker.known.policy.backoff.ceiling, .seconds(1800))
    }

    private mutating func waitUntilReady(within bound: Duration) throws {
        let end = now + bound
        while machine.status.state != .ready, let next = nextDue(), next <= end { try run(until: next) }
        if machine.status.state != .ready {
            throw Violation(
                invariant: .readyInTime, detail: "\(machine.status.state) \(bound) after the world healed")
        }
    }

    /// A flow that stands in a calm world: nothing happens, whatever news there is that change nothing.
    private mutating func expectCalm() throws {
        pending = []
        let (before, flow) = (steps, machine.status.epoch)
        try run(until: now + .seconds(86_400))
        if steps != before || machine.status.epoch != flow || machine.status.state != .ready {
            throw Violation(invariant: .staysReady, detail: "\(steps - before) steps, \(machine.status.state)")
        }
    }

    /// Closes, and says everything once more that could be said.
    mutating func close() throws {
        try tell(.closeRequested)
        let (timers, isOpen) = (checker.known.timers, checker.known.socket != nil || checker.known.query != nil)
        if !timers.isEmpty || isOpen { throw Violation(invariant: .closedForGood, detail: "left: \(timers)") }
        let epoch = checker.newestEpoch
        let local = Endpoint(address: World.source(of: 0), port: 1)
        let last: [ConnectionInput] = [
            .pathChanged(world.path()), .redialRequested, .dialFailed(epoch: epoch, .refused),
            .dialSucceeded(epoch: epoch, local: local, remote: local), .timerFired(.retry), .timerFired(.connect),
            .dialResolved(query: checker.newestQuery, addresses: World.hosts), .closeRequested,
        ]
        for input in last { try tell(input) }
        try run(until: now + .seconds(3600))
    }
}
