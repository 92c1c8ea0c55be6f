// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform

/// A network from its birth to its end, with the product watching it.
final class Episode {
    /// What became of a step.
    enum Outcome: Sendable {
        /// All verdicts are the kernel's.
        case agreed
        /// These are not, and the kernel says the same before and after.
        case disagreed([Disagreement])
        /// The kernel kept changing by itself for as long as anybody looked.
        case unsettled
    }

    /// How long the product may stay wrong while the kernel says one and the same. The kernel announces some changes
    /// before it makes them, so that whoever asks at the announcement may be given the old answer, and has to ask
    /// again; a gateway that died counts as dead while it is asked for, three seconds (`mcast_solicit` times
    /// `retrans_time_ms`, Documentation/networking/ip-sysctl.rst); and the machine may be busy.
    static let patience = Duration.seconds(6)

    /// How long the kernel may go on changing by itself: detection of duplicates, expiry, a gateway that dies. Each of
    /// those ends within a second or two.
    static let unrest = Duration.seconds(15)

    let topology: Topology
    private let names: NameConfiguration
    private let watcher: Watcher
    private let patience: Duration
    private var isMarkerOdd = true
    private(set) var comparisons = 0
    /// What was agreed on, counted by status or reason.
    private(set) var verdicts: [String: Int] = [:]
    /// For each step in which the product was wrong at first, how long.
    private(set) var delays: [Duration] = []

    private init(_ topology: Topology, _ names: NameConfiguration, _ watcher: Watcher, patience: Duration) {
        self.topology = topology
        self.names = names
        self.watcher = watcher
        self.patience = patience
    }

    /// - Parameters:
    ///   - receiveBuffer: of the socket on which the product hears of changes. A small one is overrun.
    ///   - patience: how long the product may be wrong.
    static func begin(receiveBuffer: Int, patience: Duration = patience) async throws -> Episode {
        let topology = try await Topology.create()
        try await topology.host.ip(Watcher.markerCommand(true))
        let sockets = try await topology.host.run { try KernelSockets(receiveBuffer: receiveBuffer) }
        let names = try NameConfiguration(servers: Subject.nameServers)
        return Episode(topology, names, await Watcher(sockets, names), patience: patience)
    }

    func end() async {
        await watcher.stop()
        await topology.close()
    }

    /// How many messages the kernel could not deliver to the product so far.
    func dropped() async throws -> Int {
        try await topology.host.run { try NetlinkDrops.ofWatchersOfRules() }
    }

    /// Lets the changes of a step happen and compares what the product says then with what the kernel says.
    func perform(_ step: Step) async throws -> Outcome {
        var word = try await ask(after: try await performAllButLast(of: step))
        let start = BootClock.now()
        var wrongSince: Duration?
        while BootClock.now() - start < Self.unrest {
            let said = try await watcher.settled(isMarkerOdd)
            let found = try word.map { try compare(said, with: $0) }
            if found == [] {
                if let wrongSince { delays.append(BootClock.now() - wrongSince) }
                agree(on: said)
                return .agreed
            }
            // Wrong, or overtaken by what the kernel does by itself: it counts when the kernel's word is the same on
            // both sides of the product's, and has no alternative.
            let next = try await ask(after: [])
            if let found, var word, word == next, word.isSettled {
                word.alternatives = try await alternatives(to: found)
                let found = try compare(said, with: word)
                if found.isEmpty {
                    agree(on: said)
                    return .agreed
                }
                let since = wrongSince ?? BootClock.now()
                if BootClock.now() - since > patience { return .disagreed(found) }
                wrongSince = since
            } else {
                wrongSince = nil
            }
            word = next
        }
        return .unsettled
    }

    /// What the product says when it is started now, where that is not what the kernel says: it tells whether a
    /// disagreement is a change that was missed, or a mistake about the present state.
    func secondOpinion() async throws -> [Disagreement] {
        let sockets = try await topology.host.run { try KernelSockets() }
        let newcomer = await Watcher(sockets, names)
        guard let word = try await ask(after: []) else { return [] }
        let said = try await newcomer.settled(isMarkerOdd)
        await newcomer.stop()
        return try compare(said, with: word)
    }

    /// The host's network in `ip`'s words, for whoever looks into a disagreement.
    func state() async throws -> String {
        var state: [String] = []
        for command in [
            "-brief address", "neigh", "nexthop", "rule", "route show table all", "-6 rule", "-6 route show table all",
        ] {
            // What every machine has.
            let lines = try await topology.host.ip(command).split(separator: "\n").filter {
                !$0.hasPrefix("multicast ") && !$0.hasPrefix("anycast ") && !$0.hasPrefix("broadcast ")
            }
            state += ["host# ip \(command)"] + lines.map { "  \($0)" }
        }
        return state.joined(separator: "\n")
    }

    /// Lets the changes of a step happen, and returns when the product knows of them.
    func replay(_ step: Step) async throws {
        let rest = try await performAllButLast(of: step)
        isMarkerOdd.toggle()
        _ = try await topology.host.ip(attempting: rest + [Watcher.markerCommand(isMarkerOdd)])
        _ = try await watcher.settled(isMarkerOdd)
    }

    private func compare(_ said: [Comparison.Question: Path], with word: KernelWord) throws -> [Disagreement] {
        let comparison = try Comparison(said, with: word)
        comparisons += comparison.count
        return comparison.disagreements
    }

    private func agree(on said: [Comparison.Question: Path]) {
        for (question, path) in said where question != .marker {
            verdicts[path.reason?.rawValue ?? path.status.rawValue, default: 0] += 1
        }
    }

    /// The ways that the kernel may take for what a verdict is wrong about, and for the network, which is part of all.
    private func alternatives(to found: [Disagreement]) async throws -> [Subject: [KernelWord.Route]] {
        let subjects = found.compactMap { disagreement -> Subject? in
            guard case .subject(let subject) = disagreement.question else { return nil }
            return subject
        }
        return try await Alternatives(of: subjects + Subject.ofNetwork, on: topology.host).ways
    }

    /// Lets changes happen in their order, neighbours of one machine in one process, and returns the host's last ones,
    /// which are to go with the questions.
    private func performAllButLast(of step: Step) async throws -> [String] {
        var pending = Batch()
        func flush() async throws {
            if !pending.commands.isEmpty { try await perform(pending) }
            pending = Batch()
        }
        func append(_ command: String, isFar: Bool) async throws {
            let command = Batch.splitting(command)
            if pending.isFar != isFar || pending.options != command.options { try await flush() }
            pending.isFar = isFar
            pending.options = command.options
            pending.commands.append(command.rest)
        }
        for change in step.changes {
            switch change {
            case .host(let command) where change.mayEndBatch:
                try await flush()
                _ = try? await topology.host.ip(command)
            case .host(let command): try await append(topology.hostCommand(command), isFar: false)
            case .far(let command): try await append(command, isFar: true)
            case .parameter(let name, let value):
                try await flush()
                // Of a link that is not there, or has no IPv6 at the moment.
                try? await topology.host.sysctl([(name, value)])
            case .advertise(let cable, let lifetime, let isBare):
                try await flush()
                // Of a cable that is down at the far end.
                try? await topology.far.advertise(
                    lifetime: lifetime, prefix: isBare ? nil : "2001:db8:\(cable)::", on: "e\(cable)")
            case .pause:
                try await flush()
                try await Task.sleep(for: .milliseconds(1200))
            }
        }
        if pending.isFar || !pending.options.isEmpty { try await flush() }
        return pending.commands
    }

    /// Commands for one process.
    private struct Batch {
        var isFar = false
        var options: [String] = []
        var commands: [String] = []

        /// `ip` takes its options for a whole batch.
        static func splitting(_ command: String) -> (options: [String], rest: String) {
            guard command.hasPrefix("-"), let blank = command.firstIndex(of: " ") else { return ([], command) }
            return ([String(command[..<blank])], String(command[blank...].dropFirst()))
        }
    }

    private func perform(_ batch: Batch) async throws {
        let machine = batch.isFar ? topology.far : topology.host
        _ = try await machine.ip(attempting: batch.commands, options: batch.options)
    }

    /// Runs `commands` on the host, asks its kernel about everything, and turns the marker. `nil` where the kernel was
    /// interrupted in its answer.
    func ask(after commands: [String]) async throws -> KernelWord? {
        isMarkerOdd.toggle()
        let attempts = try await topology.host.ip(
            attempting: commands + KernelWord.questions + [Watcher.markerCommand(isMarkerOdd)],
            options: KernelWord.options)
        return try KernelWord(attempts, from: commands.count)
    }
}
