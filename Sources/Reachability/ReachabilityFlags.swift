// SPDX-License-Identifier: Apache-2.0

public import DialtoneNetworkPath

/// A path in the terms of Apple's `SCNetworkReachabilityFlags`, for code that comes from there.
public struct ReachabilityFlags: OptionSet, Hashable, Sendable {
    /// The bits, at the places that Apple's header gives them (SystemConfiguration/SCNetworkReachability.h).
    public let rawValue: UInt32

    /// Flags from their bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Packets go through a connection that is made on demand and comes and goes, such as PPP.
    public static let transientConnection = ReachabilityFlags(rawValue: 1 << 0)
    /// The target can be reached, if need be after a connection was brought up.
    public static let reachable = ReachabilityFlags(rawValue: 1 << 1)
    /// A connection must be brought up first.
    public static let connectionRequired = ReachabilityFlags(rawValue: 1 << 2)
    /// Traffic brings it up.
    public static let connectionOnTraffic = ReachabilityFlags(rawValue: 1 << 3)
    /// A person must do something for it. Never set here: Linux has no such knowledge.
    public static let interventionRequired = ReachabilityFlags(rawValue: 1 << 4)
    /// The programming interface brings it up. Never set here.
    public static let connectionOnDemand = ReachabilityFlags(rawValue: 1 << 5)
    /// The target is this machine.
    public static let isLocalAddress = ReachabilityFlags(rawValue: 1 << 16)
    /// The target is on a directly attached network.
    public static let isDirect = ReachabilityFlags(rawValue: 1 << 17)
    /// Packets go over a mobile network.
    public static let isWWAN = ReachabilityFlags(rawValue: 1 << 18)

    /// The flags that describe `path`.
    public init(_ path: Path) {
        self = []
        switch path.status {
        case .satisfied: insert(.reachable)
        case .requiresConnection: formUnion([.reachable, .connectionRequired, .connectionOnTraffic])
        case .unsatisfied, .unknown: return
        }
        if path.isLocalAddress { insert(.isLocalAddress) }
        if path.isDirect { insert(.isDirect) }
        if path.interface?.kind == .cellular { insert(.isWWAN) }
    }
}
