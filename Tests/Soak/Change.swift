// SPDX-License-Identifier: Apache-2.0

/// One thing that happens to the network. Written so that a person can repeat it by hand.
enum Change: Hashable, Sendable {
    /// A command of `ip` on the host, whose reachability is judged; with its option `-4` or `-6` where it needs one.
    case host(String)
    /// A command of `ip` at the other end of the host's cables.
    case far(String)
    /// The far machine advertises itself on a cable as a default router for so many seconds; bare, or with the prefix
    /// of the cable.
    case advertise(cable: Int, lifetime: UInt16, isBare: Bool)
    /// A kernel parameter of the host.
    case parameter(name: String, value: String)
    /// Time, in which what has a lifetime of a second comes to its end.
    case pause
}

extension Change {
    /// Whether `ip` may give up the whole batch over it: it does so over the name of a link that is not there, when it
    /// stands in a next hop or says whose port another is to be, and over whatever the kernel refuses of neighbours.
    var mayEndBatch: Bool {
        guard case .host(let command) = self else { return false }
        let words = command.split(separator: " ")
        let isMissing = zip(words, words.dropFirst()).contains { $0 == "dev" && !$1.hasPrefix("e") }
        return words.contains("master") || words.contains("neigh") || words.contains("nexthop") && isMissing
    }

    /// Whether it goes into one process with others of its kind.
    var isBatchable: Bool {
        guard case .host(let command) = self else { return false }
        return !mayEndBatch && !command.hasPrefix("-")
    }
}

extension Change: CustomStringConvertible {
    var description: String {
        switch self {
        case .host(let command): "host# ip \(command)"
        case .far(let command): "far#  ip \(command)"
        case .parameter(let name, let value): "host# sysctl -w \(name)=\(value)"
        case .advertise(let cable, let lifetime, let isBare):
            "far#  a router advertisement on e\(cable), lifetime \(lifetime)" + (isBare ? "" : ", with a prefix")
        case .pause: "sleep 1.2"
        }
    }
}

/// What happens between two looks at the verdicts.
struct Step: Hashable, Sendable {
    var changes: [Change]
}
