// SPDX-License-Identifier: Apache-2.0

// The rows of what is not a distribution of reaction times.

extension Report {
    mutating func add(load churns: [LoadProbe.Churn: LoadProbe.Figures]) {
        func share(_ thousandths: Int) -> String { "\(decimal(Double(thousandths) / 10)) % of a core" }
        for churn in LoadProbe.Churn.allCases {
            guard let figures = churns[churn] else { continue }
            let what =
                switch churn {
                case .elsewhere: "a million routes, 10,000 changes a second"
                case .watched: "the same, all of the watched host's route"
                }
            add(what, toReach: "under 10 %", share(figures.share), n: "\(figures.rate) a second")
            add("  resident before, after", toReach: "flat", figures.memoryText)
            let missed = figures.missed > 0 ? ", \(figures.missed) missed" : ""
            add(
                "  last change to the verdict at a subscriber", toReach: "100 ms", timeText(figures.settling.median),
                p99: timeText(figures.settling.max()), n: "\(figures.settling.count)\(missed)")
            add("  peer: ip monitor, no verdict", share(figures.peerShare))
        }
    }

    mutating func add(idle: (rests: [IdleProbe.Rest], peer: IdleProbe.Rest?)) {
        for rest in idle.rests {
            add(
                "idle, \(rest.connections) connections: calls, switches a minute", toReach: "0, 0", rest.activity,
                n: IdleProbe.windows)
        }
        let peer = "  peer: systemd-networkd, switches a minute"
        if let rest = idle.peer {
            add(peer, "\(IdleProbe.aMinute(rest.switches, of: IdleProbe.window))", n: IdleProbe.windows)
        } else {
            add(peer, "15 (not of this run)")
        }
        for rest in idle.rests {
            add("idle, \(rest.connections) connections: resident, private", toReach: "9 MB, 2 MB", rest.memory.text)
        }
        add("  peer: systemd-networkd", idle.peer?.memory.text ?? "8.9 MB resident (not of this run)")
    }

    mutating func add(wakes: [WakeProbe.Figures]) {
        for figures in wakes {
            let what = "server's send to the client's read: \(figures.kind.text)"
            guard let measurement = figures.measurement else {
                add(what, "no control groups here")
                continue
            }
            add(what, toReach: "", measurement)
            add("  system calls of the agent a wake", figures.systemCalls.map(decimal) ?? "no strace")
        }
        add("  start of a unit", "no systemd in a namespace; Tests/Lab/BootStories has one")
    }

    mutating func add(push figures: PushProbe.Figures?) {
        guard let figures else { return add("push", "no Python with PyPI's websockets") }
        add("POST to the app's Message, all asleep", toReach: "", figures.asleep)
        add("  one message after the other", toReach: "", figures.awake)
        add("  on a socket of a moment ago, after a move", toReach: "", figures.roamed)
        let (idle, window) = (figures.idle, PushProbe.window.components.seconds)
        add(
            "push, \(PushProbe.apps) apps, nothing comes: switches of dialtone-session", toReach: "0",
            "\(idle.sessionSwitches)", n: "\(window) s")
        add("  its processor time", toReach: "0", "\(idle.sessionTime) ns")
        add(
            "  switches of dialtoned; pings of the server, each \(PushProbe.pings) s, that it answered",
            "\(idle.agentSwitches); \(idle.answered)", n: "\(window) s")
        add("  dialtone-session: resident, private", toReach: "12 MB", idle.memory.text)
    }

    mutating func add(kills figures: KillProbe.Figures) {
        add(
            "kill -9 of the daemon under traffic: flows dropped", toReach: "0",
            "\(figures.dropped) of \(KillProbe.flows)", n: "\(figures.outages.count) kills")
        add("  wakes lost", toReach: "0", "\(figures.lost)", n: "\(figures.messages) messages")
        add("  answered twice or out of order", toReach: "0", "\(figures.disordered)")
        add(
            "  kill to the answer to a call made at once", timeText(figures.outages.median),
            p99: timeText(figures.outages.percentile(0.99)), n: "\(figures.outages.count)")
    }

    mutating func add(floods: [FloodProbe.Company: FloodProbe.Figures]) {
        for company in FloodProbe.Company.allCases {
            guard let figures = floods[company] else { continue }
            let (what, toReach) =
                switch company {
                case .none: ("kernel event to a subscriber's read, nobody else", "")
                case .deaf: ("  beside two that do not read", "unnoticed")
                case .flood: ("  beside one that floods, \(figures.answers) calls a second", "unnoticed")
                }
            add(what, toReach: toReach, figures.measurement)
            add("    private memory of the daemon", toReach: "bounded", "\(decimal(Double(figures.memory) / 1024)) MiB")
        }
    }

    mutating func add(roam figures: RoamProbe.Figures) {
        let none = figures.moved.differences.count { $0 <= 0 }
        let overlap = figures.moved.differences.map { -$0 }
        add(
            "better path appears, old one still good: gap", toReach: "none",
            "none in \(none) of \(figures.moved.samples.count + figures.moved.missed)", n: "")
        add(
            "  both flows stand for", timeText(overlap.median), p99: timeText(overlap.percentile(0.99)),
            n: "\(overlap.count)")
        add(
            "  without make_before_break", "stays on the old path in \(figures.kept.count) of \(figures.kept.of)")
        add("  router drops the old address on the new path: gap", toReach: "", figures.strict)
        add("  the same without make_before_break", toReach: "", figures.strictWithout)
    }

    mutating func add(keepalive loads: [KeepaliveWakes.Figures]) {
        for figures in loads {
            add(
                "keepalive wakes an hour, \(figures.load)", toReach: "\(decimal(figures.lowerBound)), the bound",
                decimal(figures.planned))
            add("  one each", decimal(figures.each))
        }
    }

    mutating func add(memory: (plain: [MemoryProbe.Rest], secured: [MemoryProbe.Rest])) {
        for (kind, toReach, rests) in [("plain", "2 KB", memory.plain), ("TLS", "", memory.secured)] {
            guard let none = rests.first else { continue }
            for rest in rests.dropFirst() {
                add(
                    "memory of a connection, \(kind), \(rest.connections) of them: resident, private",
                    toReach: toReach, rest.memory.growth(from: none.memory, over: rest.connections))
            }
            // The first connections pay for what all share.
            if let some = rests.first(where: { $0.relay != nil }), let most = rests.last, let relay = most.relay,
                let base = some.relay, most.connections > some.connections
            {
                add(
                    "  in dialtone-tls, from \(some.connections) to \(most.connections)", toReach: "10 KB",
                    relay.growth(from: base, over: most.connections - some.connections))
                add("  dialtone-tls with \(some.connections)", base.text)
            }
            guard let most = rests.last else { continue }
            add("  \(most.connections) in all; start to the last of them", most.memory.text, p99: timeText(most.ready))
        }
    }

    mutating func add(many figures: ManyProbe.Figures) {
        let connections = ManyProbe.connections
        add("\(connections) connections of one daemon: start to the last", timeText(figures.ready))
        add("  resident, private", figures.rest.memory.text)
        add("  idle: calls, switches a minute", toReach: "0, 0", figures.rest.activity, n: IdleProbe.windows)
        add(
            "  path returns: first SYN, last SYN, all accepted",
            [figures.firstSYN, figures.lastSYN, figures.accepted].map { timeText($0) }.joined(separator: ", "))
        add("  SYN in all", toReach: "one each", "\(figures.syns)")
        add(
            "  most in a second, in 10 ms", "\(figures.mostInSecond), \(figures.mostInTenMilliseconds)")
    }

    /// What is proven by tests.
    mutating func addWhatIsElsewhere() {
        for (what, toReach, source) in [
            ("verdicts under random changes", "100 % right", "make soak"),
            ("simulated bad networks", "a million", "make sim"),
            ("kill -9 under a real systemd", "nothing dropped", "make test (BootStories)"),
        ] { add(what, toReach: toReach, source) }
    }
}

extension LoadProbe.Figures {
    fileprivate var memoryText: String {
        "\(decimal(Double(memory.before) / 1024)) MiB, \(decimal(Double(memory.after) / 1024)) MiB"
    }
}

extension IdleProbe.Rest {
    /// System calls and switches a minute.
    fileprivate var activity: String {
        let calls = systemCalls.map { "\(IdleProbe.aMinute($0, of: IdleProbe.traced))" } ?? "no strace"
        return "\(calls), \(IdleProbe.aMinute(switches, of: IdleProbe.window))"
    }
}
