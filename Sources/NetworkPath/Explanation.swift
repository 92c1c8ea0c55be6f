// SPDX-License-Identifier: Apache-2.0

/// Why a path is as it is: what was found at each step from the name to the source address.
public struct Explanation: Hashable, Sendable {
    /// One thing that was looked at.
    public struct Step: Hashable, Sendable {
        /// What was looked at. The raw values are published on the socket.
        public enum Subject: String, Hashable, Sendable, CaseIterable {
            /// The host's name and its addresses.
            case name
            /// The policy rule that led to the route, or refused.
            case rule
            /// The tables that were looked in without success.
            case table
            /// The route.
            case route
            /// The route's next hops, where there is more to them than one gateway.
            case nexthop
            /// The interface.
            case link
            /// The gateway, or the host itself on its own link.
            case neighbour
            /// The source address.
            case source
        }

        /// What was looked at.
        public var subject: Subject
        /// What was found, in words.
        public var text: String
        /// Whether it is why the target cannot be reached.
        public var isDecisive: Bool

        /// A step.
        public init(_ subject: Subject, _ text: String, isDecisive: Bool = false) {
            self.subject = subject
            self.text = text
            self.isDecisive = isDecisive
        }
    }

    /// The verdict that is explained.
    public var path: Path
    /// What it rests on, in order. Exactly one is decisive where the path is not satisfied, none where it is.
    public var steps: [Step]
    /// The verdicts on the other addresses of the target's name.
    public var others: [Path]
    /// The names of the interfaces that were ignored: the one that was named, and those that would go with it.
    public var without: [String]

    /// An explanation.
    public init(path: Path, steps: [Step] = [], others: [Path] = [], without: [String] = []) {
        self.path = path
        self.steps = steps
        self.others = others
        self.without = without
    }
}

/// What was found out about a name.
package struct NameFinding: Hashable, Sendable {
    /// Where addresses come from.
    package enum Origin: Hashable, Sendable {
        /// The hosts file.
        case hostsFile
        /// The name's own meaning: `localhost` (RFC 6761).
        case definition
        /// A name server; the answer may be used for this long.
        case server(timeLeft: Duration)
    }

    /// What came back.
    package enum Answer: Hashable, Sendable {
        /// These addresses.
        case addresses([IPAddress], Origin)
        /// The name servers say that there is none, in the resolver's words.
        case none(String)
        /// Nobody could be asked, or nobody answered, in the resolver's words.
        case silence(String)
    }

    /// The name.
    package var name: String
    /// What came back.
    package var answer: Answer
    /// The name servers that the machine is configured with.
    package var servers: [IPAddress]

    /// A finding.
    package init(_ name: String, _ answer: Answer, servers: [IPAddress] = []) {
        self.name = name
        self.answer = answer
        self.servers = servers
    }
}

/// What was found out about the way to one address.
package struct RouteFinding: Hashable, Sendable {
    /// What was asked, with the user whose packet it is.
    package var packet: RulePacket
    /// What the kernel answered, or would.
    package var answer: RouteAnswer
    /// The way through rules and tables. For a route that the kernel named, its end is that route.
    package var walk: RuleWalk
    /// The entry of the gateway, or of the destination on its own link; `nil` where the kernel has none.
    package var neighbour: NeighbourEntry?
    /// How long the gateway is known to be silent.
    package var silence: Duration?
    /// Whether the kernel passes over routes by an interface that has no carrier.
    package var ignoresLinkDown: Bool
    /// Whether the answer is one of several that the kernel may choose from: it spreads packets over next hops by a
    /// hash of its own.
    package var isChoiceOpen: Bool

    /// A finding.
    package init(
        packet: RulePacket, answer: RouteAnswer, walk: RuleWalk, neighbour: NeighbourEntry? = nil,
        silence: Duration? = nil, ignoresLinkDown: Bool = false, isChoiceOpen: Bool = false
    ) {
        self.isChoiceOpen = isChoiceOpen
        self.packet = packet
        self.answer = answer
        self.walk = walk
        self.neighbour = neighbour
        self.silence = silence
        self.ignoresLinkDown = ignoresLinkDown
    }

    /// The entry at the end of the way.
    var entry: RouteEntry? {
        guard case .entries(let entries) = walk.end else { return nil }
        return entries.first
    }
}
