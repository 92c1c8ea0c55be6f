// SPDX-License-Identifier: Apache-2.0

internal import DialtoneLabSupport

/// What a user's calls take while another user asks on a thousand connections at once for whatever costs the daemon
/// most. `lab-neighbour` is both of them, in processes of their own; run as root, it makes them two users.
enum NeighbourProbe {
    /// What the greedy user asks for.
    enum Attack: String, CaseIterable {
        case explain, deep, keys, list, churn

        var text: String {
            switch self {
            case .explain: "explanations"
            case .deep: "JSON that is nested too deep"
            case .keys: "4,800 unknown keys in a call"
            case .list: "lists"
            case .churn: "opening and closing"
            }
        }
    }

    /// How long calls took, in nanoseconds, and how many were answered.
    struct Stay {
        var (calls, served) = (0, 0)
        var (median, late) = (Int64(0), Int64(0))
    }

    /// What came of an attack.
    struct Figures {
        let attack: Attack
        var alone = Stay()
        var beside = Stay()
        /// How many answers the greedy user got.
        var answers = 0
        /// The private memory of the daemon afterwards, in KiB.
        var memory = 0
    }

    private static let connections = 1000
    private static let calls = 1000

    /// Measures each attack against a daemon of its own.
    static func measure(_ daemon: String) async throws -> [Figures] {
        var all: [Figures] = []
        for attack in Attack.allCases {
            let machine = try await Namespace.create("a neighbourhood")
            try await machine.ip("link set lo up")
            let agent = try await Agent(daemon, on: machine)
            let output = try await machine.command([
                LabAgent.program("lab-neighbour"), agent.socket, "beside", attack.rawValue, "\(connections)",
                "\(calls)",
            ])
            var figures = Figures(attack: attack)
            for line in output.split(separator: "\n") { read(line, into: &figures) }
            figures.memory = try ProcessCost.memory(of: agent.process.processID).privately
            all.append(figures)
            await machine.close()
        }
        return all
    }

    private static func read(_ line: Substring, into figures: inout Figures) {
        let words = line.split(separator: " ")
        let pairs = words.map { $0.split(separator: "=") }.filter { $0.count == 2 }
        let values = Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], Double($0[1]) ?? 0) })
        func nanoseconds(_ name: Substring) -> Int64 { Int64((values[name] ?? 0) * 1_000_000) }
        let stay = Stay(
            calls: Int(values["calls"] ?? 0), served: Int(values["served"] ?? 0), median: nanoseconds("p50"),
            late: nanoseconds("p99"))
        switch words.first {
        case "alone": figures.alone = stay
        case "beside": figures.beside = stay
        default: figures.answers = Int(values["answers"] ?? 0)
        }
    }
}

extension Report {
    mutating func add(neighbours: [NeighbourProbe.Figures]) {
        guard let first = neighbours.first else { return }
        add(
            "another user's call, alone", timeText(first.alone.median), p99: timeText(first.alone.late),
            n: "\(first.alone.served) of \(first.alone.calls)")
        for figures in neighbours {
            let (alone, beside) = (figures.alone, figures.beside)
            add(
                "  beside a thousand connections of one: \(figures.attack.text)", toReach: "p99 50 ms",
                timeText(beside.median), p99: timeText(beside.late), n: "\(beside.served) of \(beside.calls)")
            let ratio = alone.late > 0 ? Double(beside.late) / Double(alone.late) : 0
            add(
                "    p99 over alone; private memory; answers to the greedy one",
                "\(decimal(ratio)); \(decimal(Double(figures.memory) / 1024)) MiB; \(figures.answers)")
        }
    }
}
