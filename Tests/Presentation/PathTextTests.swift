// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Testing

@testable import DialtonePresentation

/// Paths in words.
@Suite struct PathTextTests {
    @Test func `a satisfied network says over what, via whom, and what it carries`() {
        #expect(PathText.network(Sample.path()) == "available over wlan0 (wifi) via 192.168.1.1, IPv4 DNS")
        let everything = Sample.path(interface: Sample.interface("wwan0", .cellular), gateway: nil) {
            ($0.supportsIPv6, $0.expensive, $0.constrained) = (true, true, true)
        }
        #expect(
            PathText.network(everything) == "available over wwan0 (cellular, expensive, constrained), IPv4 IPv6 DNS")
        let little = Sample.path(interface: Sample.interface("x0", .other)) {
            ($0.supportsIPv4, $0.supportsDNS) = (false, false)
        }
        #expect(PathText.network(little) == "available over x0 via 192.168.1.1")
        #expect(PathText.network(Sample.path(interface: nil, gateway: nil)) == "available, IPv4 DNS")
    }

    @Test func `what is not satisfied says why, in every status`() {
        #expect(PathText.network(Sample.path(.unsatisfied, .noRoute, interface: nil)) == "unavailable: no route")
        #expect(PathText.network(Sample.path(.unsatisfied, interface: nil)) == "unavailable")
        #expect(PathText.network(Sample.path(.requiresConnection)) == "requires a connection")
        #expect(PathText.network(Sample.path(.unknown, interface: nil)) == "unknown: the kernel cannot be asked")
    }

    @Test func `a state that is being read anew says so, unless there is none`() {
        func incoherent(_ status: NetworkAPI.Status, _ reason: NetworkAPI.Reason? = nil) -> String {
            PathText.network(Sample.path(status, reason, interface: nil, gateway: nil) { $0.coherent = false })
        }
        #expect(incoherent(.satisfied) == "available, IPv4 DNS (being read anew)")
        #expect(incoherent(.unsatisfied, .noCarrier) == "unavailable: no interface has a carrier (being read anew)")
        #expect(incoherent(.unknown) == "unknown: the kernel cannot be asked")
    }

    /// Each reason, with everything that can be said and with nothing.
    @Test(arguments: [
        (NetworkAPI.Reason.noRoute, "no route to 192.0.2.7", "no route"),
        (.noCarrier, "wlan0 has no carrier", "no interface has a carrier"),
        (.noAddress, "no usable source address on wlan0", "no usable source address"),
        (.gatewayUnreachable, "the gateway 192.168.1.1 does not answer", "the gateway does not answer"),
        (.prohibited, "a rule or route prohibits packets to 192.0.2.7", "a rule or route prohibits packets"),
        (.blackhole, "a rule or route swallows packets to 192.0.2.7", "a rule or route swallows packets"),
        (.unreachable, "a route declares 192.0.2.7 unreachable", "a route declares it unreachable"),
        (
            .nameUnresolved, "the name is not found, or no name server answers",
            "the name is not found, or no name server answers"
        ),
    ])
    func `each reason is a sentence with what is known`(
        reason: NetworkAPI.Reason, full: String, bare: String
    ) {
        let known = Sample.path(.unsatisfied, reason) { $0.destination = "192.0.2.7" }
        #expect(PathText.reason(reason, known) == full)
        #expect(PathText.check(known, target: "sip.example.com:5060") == "Not reachable: \(full).")
        let unknown = Sample.path(.unsatisfied, reason, interface: nil, gateway: nil)
        #expect(PathText.reason(reason, unknown) == bare)
    }

    @Test func `no reason was forgotten`() {
        for reason in NetworkAPI.Reason.allCases {
            let text = PathText.reason(reason, Sample.path(.unsatisfied, reason, interface: nil, gateway: nil))
            #expect(!text.isEmpty && !text.contains("  ") && !text.hasSuffix(" "), "\(reason): \"\(text)\"")
        }
    }

    @Test func `the answer to a check names the address, the way and the source`() {
        let routed = Sample.path { $0.destination = "198.51.100.7" }
        #expect(
            PathText.check(routed, target: "sip.example.com:5061")
                == "Route available: sip.example.com:5061 is 198.51.100.7, over wlan0 (wifi) "
                + "via 192.168.1.1 from 192.168.1.23 (nothing was sent)."
        )
        #expect(
            PathText.check(routed, target: "198.51.100.7:5061")
                == "Route available: 198.51.100.7:5061 over wlan0 (wifi) via 192.168.1.1 from 192.168.1.23 "
                + "(nothing was sent).")
        let direct = Sample.path(gateway: nil) { ($0.destination, $0.isDirect) = ("192.168.1.40", true) }
        #expect(
            PathText.check(direct, target: "printer")
                == "Route available: printer is 192.168.1.40, over wlan0 (wifi) from 192.168.1.23, on the link itself "
                + "(nothing was sent).")
        let local = Sample.path { ($0.destination, $0.isLocalAddress) = ("127.0.0.1", true) }
        #expect(
            PathText.check(local, target: "localhost")
                == "Route available: localhost is 127.0.0.1, on this machine (nothing was sent).")
        #expect(
            PathText.check(local, target: "127.0.0.1")
                == "Route available: 127.0.0.1 on this machine (nothing was sent).")
    }

    @Test func `a check that cannot say yes says what there is`() {
        #expect(
            PathText.check(Sample.path(.unsatisfied, interface: nil), target: "h")
                == "Not reachable: no reason is known.")
        #expect(
            PathText.check(Sample.path(.requiresConnection, gateway: nil), target: "h")
                == "Route available once a connection is brought up: h over wlan0 (wifi).")
        let unknown = PathText.check(Sample.path(.unknown, interface: nil), target: "h:1")
        let question = "Is netlink blocked here (container, seccomp)?"
        #expect(unknown == "Unknown: the kernel cannot be asked for the route to h:1. \(question)")
        #expect(!unknown.contains("Not reachable"))
    }

    @Test(arguments: [
        (NetworkAPI.Status.satisfied, Style.Tone.good), (.unsatisfied, .bad), (.requiresConnection, .warning),
        (.unknown, .warning),
    ])
    func `only what is known to fail is red`(status: NetworkAPI.Status, tone: Style.Tone) {
        #expect(PathText.tone(Sample.path(status)) == tone)
    }
}
