// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Testing

@testable import DialtonePresentation

/// Lines of watch.
@Suite struct WatchLineTests {
    private func text(_ line: WatchLine, _ style: Style = Sample.plain) -> String {
        line.lines(style) { _ in "14:02:11.042" }.joined(separator: "\n")
    }

    @Test func `another's connection is told with its owner, one's own without`() {
        let office = Sample.connection("office") { $0.owner = 1000 }
        func subject(for user: Int?) -> String {
            WatchLine(Sample.event(.state, office), for: Reader(user: user) { _ in "alice" }).subject
        }
        #expect([0, 1000, nil].map(subject) == ["office (alice)", "office", "office"])
    }

    @Test func `a change of the network names what changed`() {
        let line = WatchLine(
            path: Sample.path(.unsatisfied, .noCarrier), of: "network", changes: ["status", "interface"],
            at: Sample.noon)
        #expect(line.subject == "network")
        #expect(line.text == "unavailable: wlan0 has no carrier")
        #expect(line.detail == "status, interface")
        #expect(line.time == Sample.noon)
        #expect(
            text(line) == "14:02:11.042  network   "
                + "unavailable: wlan0 has no carrier                                 status, interface")
    }

    @Test func `a line without a detail does not end in blanks`() {
        let line = WatchLine(
            path: Sample.path(.unsatisfied, .noRoute, interface: nil), of: "network", changes: [], at: Sample.noon)
        #expect(text(line) == "14:02:11.042  network   unavailable: no route")
        #expect(withoutEscapes(text(line, Sample.colour)) == text(line))
    }

    @Test func `an agent that goes and returns is told`() {
        #expect(
            text(WatchLine(agentIsThere: false, at: Sample.noon))
                == "14:02:11.042  agent     gone; waiting for it to come back")
        #expect(text(WatchLine(agentIsThere: true, at: Sample.noon)) == "14:02:11.042  agent     back")
    }

    @Test func `a connection comes up over an interface, in a time, with a new epoch`() {
        let ready = Sample.connection("office", .ready) { ($0.interface, $0.reason) = ("wwan0", "connected") }
        let line = WatchLine(
            Sample.event(.state, ready, reason: "connected", from: .connecting, lasting: .milliseconds(75)))
        #expect(line.subject == "office")
        #expect(line.text == "connecting -> ready: over wwan0 in 75 ms")
        #expect(line.detail == "epoch 8")
    }

    @Test func `a connection goes down for a reason, and says when it is tried again`() {
        let backingOff = Sample.connection("office", .backingOff) {
            ($0.attempt, $0.nextAttemptAt) = (2, Sample.noon.advanced(by: 1600))
        }
        let line = WatchLine(Sample.event(.state, backingOff, reason: "closed by the server", from: .ready))
        #expect(line.text == "ready -> backing off: closed by the server, 2nd try in 1.6 s")
    }

    @Test(arguments: [
        (ConnectionsAPI.Wake.Stage.began, nil, Duration?.none, "waking for data, reconnected"),
        (.attempted, nil, nil, "waking by signal for data, reconnected"),
        (.attemptFailed, "No such process", nil, "waking by signal failed: No such process"),
        (.acknowledged, nil, .milliseconds(20), "woken by signal for data, reconnected, acknowledged after 20 ms"),
        (.failed, nil, .seconds(8), "not woken for data, reconnected: given up after 2 attempts in 8.0 s"),
        (.programEnded, "with status 1", nil, "its program ended with status 1"),
        (.overran, nil, .seconds(10), "its client, woken for data, reconnected, has not parked it after 10 s"),
    ])
    func `a wake says what woke whom, for what, and how soon`(
        stage: ConnectionsAPI.Wake.Stage, detail: String?, after: Duration?, text: String
    ) {
        var event = Sample.event(.wake, Sample.connection("office", .ready))
        event.wake = .init(
            number: 41, stage: stage, reasons: [.data, .reconnected], means: .signal, attempts: 2, detail: detail,
            after: after)
        let line = WatchLine(event)
        #expect(line.text == text)
        #expect(line.detail == "wake 41" && line.subject == "office")
    }

    @Test func `a wake without a means to wake by is not told as if one had failed`() {
        var event = Sample.event(.wake, Sample.connection("office", .ready))
        event.wake = .init(number: 41, stage: .failed, reasons: [.data], attempts: 0, after: .zero)
        #expect(WatchLine(event).text == "nobody to wake for data")
        event.wake = .init(number: 41, stage: .acknowledged, reasons: [.data], attempts: 0, after: .milliseconds(41))
        #expect(WatchLine(event).text == "came by itself for data, after 41 ms")
    }

    @Test func `a flow that takes the place of another says why, and over what`() {
        let ready = Sample.connection("office", .ready) { $0.interface = "wlan0" }
        let line = WatchLine(Sample.event(.state, ready, reason: "moved to a better path", from: .verifying))
        #expect(line.text == "verifying -> ready: moved to a better path, over wlan0")
    }

    @Test func `what leaves the state as it is shows no arrow`() {
        let ready = Sample.connection("office", .ready) { $0.interface = "wlan0" }
        let moved = WatchLine(Sample.event(.pathChanged, ready, reason: "route changed", from: .ready))
        #expect(moved.text == "ready: route changed")
        let opened = WatchLine(Sample.event(.opened, Sample.connection("office", .waiting), reason: "opened"))
        #expect(opened.text == "waiting: opened")
        let bare = WatchLine(Sample.event(.closed, Sample.connection("office", .closed)))
        #expect(bare.text == "closed")
    }

    @Test func `a kind of event that this version does not know is shown like any other`() {
        let event = Sample.event(.init(rawValue: "painted"), Sample.connection("office", .ready), reason: "in blue")
        #expect(WatchLine(event).text == "ready: in blue")
    }

    @Test func `a connection of a snapshot shows where it stands`() {
        let ready = Sample.connection("office", .ready) { $0.interface = "wlan0" }
        #expect(WatchLine(ready, at: Sample.noon).text == "ready over wlan0")
        let waiting = Sample.connection("van", .waiting) { $0.reason = "no route" }
        let line = WatchLine(waiting, at: Sample.noon)
        #expect(line.text == "waiting: no route")
        #expect(line.detail == "epoch 8")
    }

    @Test func `a gap is told, not passed over`() {
        let line = WatchLine(gapAt: Sample.noon)
        #expect(line.text.contains("were missed"))
        #expect(!text(line).hasSuffix(" "))
    }

    @Test func `a long line pushes the columns and cuts nothing`() {
        let path = Sample.path(.unsatisfied, .noRoute) { $0.destination = String(repeating: "2001:db8::", count: 9) }
        let line = WatchLine(path: path, of: "network", changes: ["status"], at: Sample.noon)
        #expect(text(line).hasSuffix("2001:db8::  status"))
    }
}
