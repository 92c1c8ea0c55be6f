// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
internal import DialtoneNetworkPath

// Values of the engine as fields of a recording's marks, and back. `docs/recording.md` lists them.

extension Question {
    /// The question as a mark has it.
    var recordFields: [RecordingMark.Field] {
        switch self {
        case .network(let requirement, let user):
            requirement.recordFields + (user.map { [.init("user", $0)] } ?? [])
        case .host(let target): target.recordFields
        }
    }

    /// The question of a mark; `nil` where it has none.
    init?(_ mark: RecordingMark) {
        let kinds = mark.list("kinds").compactMap(InterfaceKind.init)
        let user = mark["user"].flatMap { UInt32($0) }
        switch mark["network"] {
        case "any": self = .network(.any, user: user)
        case "requires":
            guard let kind = kinds.first else { return nil }
            self = .network(.requires(kind), user: user)
        case "prohibits": self = .network(.prohibits(Set(kinds)), user: user)
        case nil:
            guard let target = Target(mark) else { return nil }
            self = .host(target)
        default: return nil
        }
    }
}

extension InterfaceRequirement {
    fileprivate var recordFields: [RecordingMark.Field] {
        switch self {
        case .any: [.init("network", "any")]
        case .requires(let kind): [.init("network", "requires"), .init("kinds", list: [kind.rawValue])]
        case .prohibits(let kinds):
            [.init("network", "prohibits"), .init("kinds", list: kinds.map(\.rawValue).sorted())]
        }
    }

    /// What it adds to "network".
    fileprivate var words: String {
        switch self {
        case .any: ""
        case .requires(let kind): " over \(kind.rawValue)"
        case .prohibits(let kinds): " not over \(kinds.map(\.rawValue).sorted().joined(separator: ", "))"
        }
    }
}

extension Question: CustomStringConvertible {
    /// `network`, `network over wifi`, or the host: `sip.example.com:5061 (mark 7)`.
    package var description: String {
        switch self {
        case .network(let requirement, let user):
            return "network\(requirement.words)" + (user.map { " (user \($0))" } ?? "")
        case .host(let target):
            let host = target.host.description
            let port = target.port.map { host.contains(":") ? "[\(host)]:\($0)" : "\(host):\($0)" } ?? host
            let rest = target.recordFields.filter { $0.name != "host" && $0.name != "port" }
            return rest.isEmpty ? port : "\(port) (\(rest.map { "\($0.name) \($0.value)" }.joined(separator: ", ")))"
        }
    }
}

extension Target {
    fileprivate var recordFields: [RecordingMark.Field] {
        var fields = [RecordingMark.Field("host", host)]
        if let port { fields.append(.init("port", port)) }
        if let transport { fields.append(.init("transport", transport.rawValue)) }
        if let mark { fields.append(.init("mark", mark)) }
        if let user { fields.append(.init("user", user)) }
        if let interface { fields.append(.init("interface", interface)) }
        if let source { fields.append(.init("source", source)) }
        return fields
    }

    fileprivate init?(_ mark: RecordingMark) {
        guard let host = mark["host"] else { return nil }
        self.init(
            Host(host), port: mark["port"].flatMap { UInt16($0) },
            transport: mark["transport"].flatMap { TransportProtocol(rawValue: $0) },
            mark: mark["mark"].flatMap { UInt32($0) }, user: mark["user"].flatMap { UInt32($0) },
            interface: mark["interface"], source: mark["source"].flatMap { IPAddress($0) })
    }
}

extension CostPolicy {
    /// The policy as a mark has it.
    var recordFields: [RecordingMark.Field] {
        [
            .init("expensive", list: expensive.sorted()), .init("inexpensive", list: inexpensive.sorted()),
            .init("constrained", list: constrained.sorted()),
        ]
            + Metering.allCases.map { metering in
                .init("metered-\(metering)", list: metered.filter { $0.value == metering }.keys.sorted())
            }
    }

    /// The policy of a mark.
    init(_ mark: RecordingMark) {
        self.init(
            expensive: Set(mark.list("expensive")), inexpensive: Set(mark.list("inexpensive")),
            constrained: Set(mark.list("constrained")))
        for metering in Metering.allCases {
            for name in mark.list("metered-\(metering)") { metered[name] = metering }
        }
    }
}

extension NameTracker.State {
    /// The state as a mark has it.
    var recordFields: [RecordingMark.Field] {
        switch self {
        case .pending: [.init("state", "pending")]
        case .unresolved(let isFinal): [.init("state", "unresolved"), .init("final", isFinal)]
        case .resolved(let addresses):
            [.init("state", "resolved"), .init("addresses", list: addresses.map(\.description))]
        }
    }

    /// The state of a mark; `nil` where it has none.
    init?(_ mark: RecordingMark) {
        switch mark["state"] {
        case "pending": self = .pending
        case "unresolved": self = .unresolved(isFinal: mark["final"] == "true")
        case "resolved": self = .resolved(mark.list("addresses").compactMap { IPAddress($0) })
        default: return nil
        }
    }
}

extension Path {
    /// The verdict as a mark has it: everything but the generation, and the name servers, which the facts have. What
    /// the path does not have is an empty value.
    var recordFields: [RecordingMark.Field] {
        [
            .init("status", status.rawValue), .init("reason", reason?.rawValue ?? ""), .init("coherent", isCoherent),
            .init("interface", interface.map { "\($0.index)" } ?? ""), .init("name", interface?.name ?? ""),
            .init("kind", interface?.kind.rawValue ?? ""), .init("up", interface?.isUp ?? false),
            .init("carrier", interface?.hasCarrier ?? false),
            .init("addresses", list: interface?.addresses.map(\.recordText) ?? []),
            .init("gateway", gateway?.description ?? ""), .init("source", source?.description ?? ""),
            .init("destination", destination?.description ?? ""), .init("direct", isDirect),
            .init("local", isLocalAddress), .init("ipv4", supportsIPv4), .init("ipv6", supportsIPv6),
            .init("dns", supportsDNS), .init("expensive", isExpensive),
            .init("cost", interface?.costSource?.rawValue ?? ""), .init("constrained", isConstrained),
        ]
    }
}

extension InterfaceAddress {
    /// `192.0.2.1/24`, with a letter for each flag behind: tentative, duplicate, deprecated.
    fileprivate var recordText: String {
        let flags = (isTentative ? "t" : "") + (isDuplicate ? "u" : "") + (isDeprecated ? "d" : "")
        return "\(address)/\(prefixLength)\(flags)"
    }
}

extension RecordingMark.Field {
    /// Whether a recorded value says the same. Of addresses the order is no part of a verdict.
    func isLike(_ recorded: String) -> Bool {
        guard name == "addresses" else { return value == recorded }
        return value.split(separator: ",").sorted() == recorded.split(separator: ",").sorted()
    }
}
