// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Testing

@testable import DialtonePresentation

/// Explanations on the screen.
@Suite struct ExplanationScreenTests {
    private static let steps: [NetworkAPI.Step] = [
        .init(subject: .rule, text: "32766: from all lookup main", decisive: false),
        .init(subject: .neighbour, text: "192.168.1.1 is FAILED", decisive: true),
    ]

    @Test func `the answer comes first, then the steps under each other, and the one that decided is marked`() {
        let reply = NetworkAPI.Explain.Reply(
            path: Sample.path(.unsatisfied, .gatewayUnreachable), steps: Self.steps,
            others: [
                Sample.path(.unsatisfied, .noRoute, interface: nil) { $0.destination = "2001:db8::7" },
                Sample.path { $0.destination = "203.0.113.9" },
                Sample.path { ($0.destination, $0.isLocalAddress) = ("::1", true) },
                Sample.path(.unknown, interface: nil) { $0.destination = "203.0.113.8" },
            ])
        #expect(
            ExplanationScreen(reply, target: "sip.example.com").lines(Sample.plain) == [
                "Not reachable: the gateway 192.168.1.1 does not answer.",
                "",
                "  rule       32766: from all lookup main",
                "  neighbour  192.168.1.1 is FAILED  <- decided",
                "  also       2001:db8::7: no route",
                "  also       203.0.113.9: route available over wlan0 (wifi) via 192.168.1.1",
                "  also       ::1: route available on this machine",
                "  also       203.0.113.8: unknown",
            ])
    }

    @Test func `what was thought away stands in the answer, and what goes with it in a line`() {
        let path = Sample.path()
        func lines(_ without: String...) -> [String] {
            ExplanationScreen(.init(path: path, steps: [], without: without), target: "h").lines(Sample.plain)
        }
        #expect(lines("eth0").first?.hasPrefix("Route available without eth0: h over wlan0") == true)
        #expect(!lines("eth0").contains { $0.hasPrefix("  without") })
        #expect(lines("eth0", "eth0.5", "mac0").last == "  without    eth0, and with it eth0.5, mac0")
        let lost = PathText.check(Sample.path(.unsatisfied, .noRoute, interface: nil), target: "h", without: "eth0")
        #expect(lost == "Not reachable without eth0: no route to h.")
    }

    @Test func `colour marks the answer and what decided`() {
        let reply = NetworkAPI.Explain.Reply(path: Sample.path(.unsatisfied, .gatewayUnreachable), steps: Self.steps)
        let lines = ExplanationScreen(reply, target: "h").lines(Sample.colour)
        #expect(lines[0].hasPrefix("\u{1B}[31mNot reachable"))
        #expect(lines[2] == "  \u{1B}[2mrule     \u{1B}[0m  32766: from all lookup main")
        #expect(lines[3] == "  neighbour  \u{1B}[31m192.168.1.1 is FAILED  <- decided\u{1B}[0m")
    }
}
