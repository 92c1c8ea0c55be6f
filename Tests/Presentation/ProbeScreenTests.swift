// SPDX-License-Identifier: Apache-2.0

import DialtoneVarlink
import Testing

@testable import DialtonePresentation

@Suite struct ProbeScreenTests {
    private static let now = Timestamp(milliseconds: 1_000_000_000_000)
    private static let style = Style(isTerminal: false, environment: [:])

    private static func lines(_ answers: ProbeScreen.Answer...) -> [String] {
        ProbeScreen(answers, target: "h:1", now: now).lines(style)
    }

    @Test(arguments: [
        (0.04, "0.0 ms"), (0.05, "0.1 ms"), (9.94, "9.9 ms"), (9.96, "10 ms"), (12.4, "12 ms"), (12.5, "13 ms"),
        (2345.6, "2346 ms"),
    ])
    func `how long it took is told to the tenth, as long as that matters`(milliseconds: Double, text: String) {
        #expect(
            Self.lines(.init(address: "192.0.2.1:1", milliseconds: milliseconds)) == [
                "Reachable: h:1 answered in \(text)."
            ])
    }

    @Test func `each of several addresses has a line, and the fastest answer is the summary's`() {
        #expect(
            Self.lines(
                .init(address: "192.0.2.1:1", failure: "refused"), .init(address: "192.0.2.7:1", milliseconds: 30),
                .init(
                    address: "[2001:db8::7]:1", milliseconds: 20, version: "1.3",
                    certificateEndsAt: Self.now.advanced(by: 86_400_000))) == [
                    "Reachable: h:1 answered in 20 ms, TLS 1.3, certificate verified, 1 day left.",
                    "  192.0.2.1:1      refused",
                    "  192.0.2.7:1      answered in 30 ms",
                    "  [2001:db8::7]:1  answered in 20 ms, TLS 1.3, certificate verified, 1 day left",
                ])
    }

    @Test func `where none answers, that is said, and of a single one why`() {
        let silent = ProbeScreen.Answer(address: "192.0.2.1:1", failure: "no answer in time")
        #expect(Self.lines(silent) == ["Not reachable: h:1: no answer in time."])
        #expect(Self.lines(silent, silent).first == "Not reachable: h:1: no answer in time.")
        let refusing = ProbeScreen.Answer(address: "192.0.2.7:1", failure: "refused")
        #expect(
            Self.lines(silent, refusing).first
                == "Not reachable: h:1: 192.0.2.1:1: no answer in time; 192.0.2.7:1: refused.")
        #expect(!ProbeScreen([silent], target: "h:1", now: Self.now).isReachable)
        #expect(ProbeScreen([], target: "h:1", now: Self.now).obstacle == "its addresses are not known")
    }
}
