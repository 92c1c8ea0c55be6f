// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

// The library's values in the form that the socket and `--json` carry. The words are the same on both sides.

extension NetworkAPI.Interface {
    /// The interface as the socket carries it.
    package init(_ interface: DialtoneNetworkPath.Interface) {
        func texts(_ addresses: [InterfaceAddress]) -> [String] { addresses.map { "\($0.address)/\($0.prefixLength)" } }
        let deprecated = texts(interface.addresses.filter(\.isDeprecated))
        let unusable = texts(interface.addresses.filter { !$0.isUsable })
        self.init(
            index: interface.index, name: interface.name,
            kind: NetworkAPI.InterfaceKind(rawValue: interface.kind.rawValue) ?? .other, up: interface.isUp,
            carrier: interface.hasCarrier, addresses: texts(interface.addresses),
            deprecated: deprecated.isEmpty ? nil : deprecated, unusable: unusable.isEmpty ? nil : unusable,
            expensive: interface.isExpensive,
            costSource: interface.costSource.flatMap { CostSource(rawValue: $0.rawValue) },
            constrained: interface.isConstrained)
    }
}

extension NetworkAPI.Path {
    /// The path as the socket carries it.
    package init(_ path: DialtoneNetworkPath.Path) {
        self.init(
            generation: Int(clamping: path.generation), status: NetworkAPI.Status(path.status),
            reason: path.reason.map { NetworkAPI.Reason($0) }, coherent: path.isCoherent,
            interface: path.interface.map { NetworkAPI.Interface($0) }, gateway: path.gateway?.description,
            source: path.source?.description, destination: path.destination?.description, isDirect: path.isDirect,
            isLocalAddress: path.isLocalAddress, supportsIPv4: path.supportsIPv4, supportsIPv6: path.supportsIPv6,
            supportsDNS: path.supportsDNS, expensive: path.isExpensive, constrained: path.isConstrained)
    }
}

extension NetworkAPI.Status {
    /// The status as the socket carries it.
    package init(_ status: DialtoneNetworkPath.Path.Status) {
        self =
            switch status {
            case .satisfied: .satisfied
            case .unsatisfied: .unsatisfied
            case .requiresConnection: .requiresConnection
            case .unknown: .unknown
            }
    }
}

extension NetworkAPI.Reason {
    /// The reason as the socket carries it.
    package init(_ reason: DialtoneNetworkPath.Path.Reason) {
        self =
            switch reason {
            case .noRoute: .noRoute
            case .noCarrier: .noCarrier
            case .noAddress: .noAddress
            case .gatewayUnreachable: .gatewayUnreachable
            case .prohibited: .prohibited
            case .blackhole: .blackhole
            case .unreachable: .unreachable
            case .nameUnresolved: .nameUnresolved
            }
    }
}

extension NetworkAPI.Explain.Reply {
    /// The explanation as the socket carries it.
    package init(_ explanation: Explanation) {
        self.init(
            path: .init(explanation.path), steps: explanation.steps.map { .init($0) },
            others: explanation.others.isEmpty ? nil : explanation.others.map { .init($0) },
            without: explanation.without.isEmpty ? nil : explanation.without)
    }
}

extension NetworkAPI.Step {
    /// The step as the socket carries it.
    package init(_ step: Explanation.Step) {
        self.init(subject: Subject(rawValue: step.subject.rawValue), text: step.text, decisive: step.isDecisive)
    }
}
