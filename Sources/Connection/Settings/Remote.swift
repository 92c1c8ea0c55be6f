// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// The other end of a connection, as a user writes it: `tcp://192.0.2.7:5060`, `mqtt://broker.example.net`.
package struct Remote: Hashable, Sendable, CustomStringConvertible {
    /// What is spoken on the connection. The raw value is the URL's scheme.
    package enum Scheme: String, Hashable, Sendable, CaseIterable {
        /// A plain byte stream that the daemon knows nothing more of.
        case tcp
        /// The same inside TLS.
        case tls
        /// SIP over TCP (RFC 3261).
        case sip
        /// SIP over TLS.
        case sips
        /// XMPP over TCP (RFC 6120).
        case xmpp
        /// XMPP with TLS from the first byte (XEP-0368).
        case xmpps
        /// MQTT over TCP.
        case mqtt
        /// MQTT over TLS.
        case mqtts
        /// WebSocket over TCP (RFC 6455).
        case ws
        /// WebSocket over TLS.
        case wss

        /// The port that is meant when none is written; `nil` for the two schemes that have no service of their own.
        /// Figures from the IANA service registry; XMPP with direct TLS has none there, 5223 is what servers use.
        package var defaultPort: UInt16? {
            switch self {
            case .tcp, .tls: nil
            case .sip: 5060
            case .sips: 5061
            case .xmpp: 5222
            case .xmpps: 5223
            case .mqtt: 1883
            case .mqtts: 8883
            case .ws: 80
            case .wss: 443
            }
        }

        /// Whether the flow's bytes are inside TLS.
        package var needsTLS: Bool {
            switch self {
            case .tls, .sips, .xmpps, .mqtts, .wss: true
            case .tcp, .sip, .xmpp, .mqtt, .ws: false
            }
        }

        /// What is offered by ALPN: the identifiers of IANA's registry. XMPP requires it (XEP-0368, section 5); others
        /// let servers tell what comes apart from what else is on the port. `tls` has none that could be known.
        package var applicationProtocols: [String] {
            switch self {
            case .sips: ["sip/2"]
            case .xmpps: ["xmpp-client"]
            case .mqtts: ["mqtt"]
            case .wss: ["http/1.1"]
            case .tls, .tcp, .sip, .xmpp, .mqtt, .ws: []
            }
        }

        /// What its servers take for a keepalive; `nil` where nothing is known of what is spoken.
        package var heartbeat: Heartbeat? {
            switch self {
            case .sip, .sips: Heartbeat(.crlf)
            case .xmpp, .xmpps: Heartbeat(.whitespace)
            case .mqtt, .mqtts: Heartbeat(.mqtt)
            case .ws, .wss: Heartbeat(.websocket)
            case .tcp, .tls: nil
            }
        }

        /// Whether its servers serve nobody who has not logged in, or at least shaken hands; many end such a flow. Of
        /// `tcp` and `tls` nobody knows.
        package var expectsLogin: Bool {
            switch self {
            case .sip, .sips, .xmpp, .xmpps, .mqtt, .mqtts, .ws, .wss: true
            case .tcp, .tls: false
            }
        }

        /// How its servers want to be dialled again.
        package var backoff: BackoffPolicy {
            switch self {
            case .sip, .sips: .sip
            case .tcp, .tls, .xmpp, .xmpps, .mqtt, .mqtts, .ws, .wss: .general
            }
        }

        /// Whether a path may follow the host: only a WebSocket asks for a resource (RFC 6455, section 3).
        var takesResource: Bool {
            switch self {
            case .ws, .wss: true
            case .tcp, .tls, .sip, .sips, .xmpp, .xmpps, .mqtt, .mqtts: false
            }
        }
    }

    /// What is spoken.
    package let scheme: Scheme
    /// The host, a name in lower case without a trailing dot, or an address.
    package let host: Target.Host
    /// The TCP port: the one written, or the scheme's.
    package let port: UInt16
    /// Whether it was written. Who writes a port means that one of this very host; otherwise the domain's SRV records
    /// say which hosts and ports offer the service (RFC 3263, section 4.2; RFC 6120, section 3.2.2).
    let isPortWritten: Bool
    /// The resource of a WebSocket with its leading slash; empty where none was written.
    package let resource: String

    /// A remote from parts that were checked.
    init(scheme: Scheme, host: Target.Host, port: UInt16, isPortWritten: Bool = true, resource: String) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.isPortWritten = isPortWritten
        self.resource = resource
    }

    /// Whether the flow's bytes are inside TLS.
    package var needsTLS: Bool { scheme.needsTLS }

    /// The name under which the domain's SRV records stand; `nil` where none are asked for: the scheme has none, or the
    /// URL says where to go.
    var serviceName: String? {
        guard case .name(let name) = host, !isPortWritten, let labels = scheme.serviceLabels else { return nil }
        return "\(labels).\(name)"
    }

    /// The canonical form: the port written unless SRV records give it, IPv6 in brackets. Parsing it gives the same
    /// remote.
    package var description: String { "\(scheme.rawValue)://\(authority)\(resource)" }

    /// Host and port alone, as in `[2001:db8::7]:5060`.
    package var authority: String {
        switch host {
        case .address(let address): Endpoint(address: address, port: port).description
        case .name(let name): serviceName == nil ? "\(name):\(port)" : name
        }
    }

    /// By what is dialled: a port that was written and is the scheme's own is another remote only where SRV records
    /// would be asked for without it.
    package static func == (one: Remote, other: Remote) -> Bool {
        one.scheme == other.scheme && one.host == other.host && one.port == other.port
            && one.resource == other.resource && one.serviceName == other.serviceName
    }

    /// As ``==(_:_:)`` compares.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(description)
    }
}
