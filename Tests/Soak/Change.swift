// SPDX-License-Identifier: Apache-2.0

/// One thing that happens to the network. Written so that a person can repeat it by hand.
enum Change: Hashable, Sendable {
    /// A command of `ip` on the host, whose reachability is judged.
    case host(String)
    /// A command of `ip` at the other end of the host's cables.
    case far(String)
    /// A kernel parameter of the host.
    case parameter(name: String, value: String)
}

extension Change: CustomStringConvertible {
    var description: String {
        switch self {
        case .host(let command): "host# ip \(command)"
        case .far(let command): "far#  ip \(command)"
        case .parameter(let name, let value): "host# sysctl -w \(name)=\(value)"
        }
    }
}

/// What happens between two looks at the verdicts.
struct Step: Hashable, Sendable {
    var changes: [Change]
}
