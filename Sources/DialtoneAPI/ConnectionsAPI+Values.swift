// SPDX-License-Identifier: Apache-2.0

public import DialtoneVarlink

extension ConnectionsAPI.State {
    /// Whether a flow stands: `ready`, or `verifying` that it still is.
    public var hasFlow: Bool { self == .ready || self == .verifying }
}

extension ConnectionsAPI.NetworkChange {
    /// The change to a path.
    package init(
        time: Timestamp, changes: [String], to path: NetworkAPI.Path, previousStatus: NetworkAPI.Status? = nil,
        previousDuration: Duration? = nil
    ) {
        self.init(
            time: time, changes: changes, status: path.status, reason: path.reason, interface: path.interface?.name,
            kind: path.interface?.kind, gateway: path.gateway, source: path.source, supportsIPv4: path.supportsIPv4,
            supportsIPv6: path.supportsIPv6, supportsDNS: path.supportsDNS, expensive: path.expensive,
            constrained: path.constrained, previousStatus: previousStatus,
            previousDuration: previousDuration)
    }
}

extension ConnectionsAPI.History.Reply {
    /// When it happened, or from when on it is kept; `nil` for the last reply.
    public var time: Timestamp? { event?.time ?? network?.time ?? agent?.time ?? dropped?.until }
}

// An opening may hold a password: what describes it, or a value that has it, shows nothing of it.

extension ConnectionsAPI.OpeningStep: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// That it is one.
    public var description: String { "a step of an opening" }
    /// The same.
    public var debugDescription: String { description }
    /// Without its fields.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ConnectionsAPI.OpeningAnswer: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// That it is one.
    public var description: String { "an answer in an opening" }
    /// The same.
    public var debugDescription: String { description }
    /// Without its fields.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
