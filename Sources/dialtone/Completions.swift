// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneConnection

// What a shell offers on its completion key. Lists of names are asked for when the key is pressed.

extension CompletionKind {
    /// The names of the user's connections. Without an agent there are none, and nothing is said of it.
    static var connections: CompletionKind { .shellCommand("dialtone list --format name 2>/dev/null") }

    /// The names of this machine's interfaces.
    static var interfaces: CompletionKind { .shellCommand("ls /sys/class/net") }

    /// The beginnings of URLs that connections have.
    static var remotes: CompletionKind {
        .list(Remote.Scheme.allCases.map { "\($0.rawValue)://" })
    }

    /// What may be sent as a keepalive.
    static var keepaliveProtocols: CompletionKind {
        .list(KeepaliveOptions.protocols)
    }

    /// How packets may be marked (RFC 4594).
    static var trafficClasses: CompletionKind {
        .list(TrafficClass.names.keys.sorted())
    }
}
