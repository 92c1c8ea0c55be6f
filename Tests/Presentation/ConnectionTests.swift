// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Testing

@testable import DialtonePresentation

/// Connections in words.
@Suite struct ConnectionTests {
    @Test func `namesakes of several users stand in the table with their owners`() {
        let connections = [1000, 1001].map { owner in Sample.connection("office") { $0.owner = owner } }
        let reader = Reader(user: 0) { $0 == 1000 ? "alice" : "\($0)" }
        let lines = ConnectionTable(connections, now: Sample.noon, for: reader).lines(Sample.plain)
        let cells = lines.map { Array($0.split(separator: " ").prefix(2)) }
        #expect(cells == [["NAME", "OWNER"], ["office", "alice"], ["office", "1001"]])
        let alone = ConnectionTable(Array(connections.prefix(1)), now: Sample.noon, for: reader).lines(Sample.plain)
        #expect(alone.first?.contains("OWNER") == false)
    }

    @Test func `the status is the network's line and a row for each connection`() {
        let connections = [
            Sample.connection("office", .ready, since: 11_520) {
                ($0.interface, $0.lastProof) = ("wlan0", Sample.noon.advanced(by: -41_000))
                $0.upSince = Sample.noon.advanced(by: -7_200_000)
                $0.unreadBytes = 17
            },
            Sample.connection("doorbell", .backingOff, since: 130) {
                ($0.reason, $0.attempt) = ("refused by 10.7.0.9:5060", 4)
                $0.downSince = Sample.noon.advanced(by: -3_600_000)
                $0.nextAttemptAt = Sample.noon.advanced(by: 12_000)
            },
            Sample.connection("van", .waiting, since: 18) { $0.reason = "no route to 198.51.100.0" },
        ]
        let screen = StatusScreen(path: Sample.path(), connections: connections, now: Sample.noon)
        #expect(
            screen.lines(Sample.plain) == [
                "Network  available over wlan0 (wifi) via 192.168.1.1, IPv4 DNS",
                "",
                "NAME      STATE        REMOTE                      FOR       VIA    HEARD",
                "office    ready        tcp://sip.example.com:5060  up 2 h    wlan0  41 s ago  17 bytes unread",
                "doorbell  backing off  tcp://sip.example.com:5060  down 1 h  –      –         "
                    + "refused by 10.7.0.9:5060, 4th try in 12 s",
                "van       waiting      tcp://sip.example.com:5060  18 s      –      –         "
                    + "no route to 198.51.100.0",
            ])
        #expect(screen.lines(Sample.colour).map(withoutEscapes) == screen.lines(Sample.plain))
        #expect(screen.lines(Sample.colour)[0].contains("\u{1B}[32mavailable"))
    }

    @Test(arguments: [79, 80, 60, 40, 20, 7])
    func `a table fits the terminal: columns fall away, and what is to be said stands below`(width: Int) {
        let connections = [
            Sample.connection("office") { $0.upSince = $0.since },
            Sample.connection("doorbell", .backingOff) {
                ($0.reason, $0.downSince) = ("refused by 10.7.0.9:5060", $0.since)
            },
        ]
        let lines = ConnectionTable(connections, now: Sample.noon).lines(Style(hasColour: false, width: width))
        #expect(lines.contains("    refused by 10.7.0.9:5060") == (width >= 40), "\(lines)")
        #expect(lines.filter { $0.hasPrefix("office") || $0.hasPrefix("doorbell") }.count == 2)
        #expect(lines.first?.contains("REMOTE") == (width >= 60), "\(lines)")
        #expect(lines.first?.contains("HEARD") == (width >= 79), "\(lines)")
        if width >= 40 { #expect(lines.allSatisfy { $0.count <= width }, "\(lines)") }
        let wide = ConnectionTable(connections, now: Sample.noon, isWide: true)
        #expect(wide.lines(Style(hasColour: false, width: width)) == wide.lines(Sample.plain))
        #expect(wide.lines(Sample.plain).first?.contains("HELD BY") == true)
    }

    @Test func `connected without a login is not healthy, and says what is missing`() {
        let connection = Sample.connection("van") { ($0.lacksLogin, $0.upSince) = (true, $0.since) }
        let lines = ConnectionTable([connection], now: Sample.noon).lines(Sample.colour)
        #expect(lines[1].contains("\u{1B}[33mconnected, not logged in"), "\(lines)")
        #expect(lines[1].contains("needs an opening, or a client that takes it and logs in"), "\(lines)")
    }

    @Test func `some of the connections can be asked for, in an order`() {
        let connections = [
            Sample.connection("b") { ($0.upSince, $0.remote) = (Sample.noon.advanced(by: -9), "tcp://z:1") },
            Sample.connection("a", .failed) { ($0.downSince, $0.remote) = (Sample.noon.advanced(by: -5), "tcp://y:1") },
            Sample.connection("c", .waiting) {
                ($0.downSince, $0.remote, $0.owner) = (Sample.noon.advanced(by: -7), "tcp://x:1", 1007)
            },
        ]
        func names(_ selection: ConnectionSelection) -> [String] { selection.of(connections).map(\.name) }
        #expect(names(.init()) == ["b", "a", "c"])
        #expect(names(.init(onlyDown: true)) == ["a", "c"])
        #expect(names(.init(states: [.waiting, .ready])) == ["b", "c"])
        #expect(names(.init(owner: 1007)) == ["c"])
        #expect(names(.init(order: .name)) == ["a", "b", "c"])
        #expect(names(.init(order: .remote)) == ["c", "a", "b"])
        #expect(names(.init(order: .since)) == ["a", "c", "b"])
        #expect(names(.init(order: .state)) == ["a", "c", "b"])
        #expect(names(.init(onlyDown: true, states: [.failed])) == ["a"])
    }

    @Test func `without connections the status says how to have one`() {
        let lines = StatusScreen(path: Sample.path(), connections: [], now: Sample.noon).lines(Sample.plain)
        #expect(lines.count == 3)
        #expect(lines.last == "No connections. \"dialtone open tcp://HOST:PORT\" supervises one.")
        let none = StatusScreen(path: Sample.path(), connections: [], of: 3, now: Sample.noon).lines(Sample.plain)
        #expect(none.last == "None of the 3 connections matches.")
    }

    @Test(arguments: ConnectionsAPI.State.allCases)
    func `each state has its words and its colour`(state: ConnectionsAPI.State) {
        let connection = Sample.connection("a", state)
        #expect(ConnectionText.state(state) == (state == .backingOff ? "backing off" : state.rawValue))
        let tone = ConnectionText.tone(connection)
        switch state {
        case .ready: #expect(tone == .good)
        case .failed, .closed: #expect(tone == .bad)
        case .waiting, .resolving, .connecting, .securing, .verifying, .backingOff: #expect(tone == .warning)
        }
    }

    @Test func `a connection that is ready does not say why, nor that nothing waits`() {
        let ready = Sample.connection { ($0.reason, $0.unreadBytes) = ("connected", 0) }
        #expect(ConnectionText.remark(ready, now: Sample.noon) == "")
        let exposed = Sample.connection {
            $0.unreadBytes = 5
            $0.security = .init(version: "1.3", cipher: "x", assurance: .unverified, isResumed: false)
        }
        #expect(ConnectionText.remark(exposed, now: Sample.noon) == "5 bytes unread, TLS unverified")
    }

    @Test func `what failed before shows beside what is tried now, and not twice`() {
        let dialling = Sample.connection("a", .connecting) {
            ($0.reason, $0.lastFailure) = ("retrying", "refused by 10.7.0.9:5060")
        }
        #expect(ConnectionText.remark(dialling, now: Sample.noon) == "retrying, last failure: refused by 10.7.0.9:5060")
        let waiting = Sample.connection("a", .failed) { ($0.reason, $0.lastFailure) = ("refused", "refused") }
        #expect(ConnectionText.remark(waiting, now: Sample.noon) == "refused")
        let refused = Sample.connection { ($0.reason, $0.lastFailure) = ("not authorized", "not authorized") }
        #expect(ConnectionText.remark(refused, now: Sample.noon) == "not authorized")
    }

    @Test func `a time that has passed is no time away`() {
        let late = Sample.connection("a", .backingOff) { $0.nextAttemptAt = Sample.noon.advanced(by: -5) }
        #expect(ConnectionText.remark(late, now: Sample.noon) == "1st try in 0 ms")
    }

    @Test(arguments: [
        (1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (10, "10th"), (11, "11th"), (12, "12th"), (13, "13th"),
        (21, "21st"), (22, "22nd"), (101, "101st"), (111, "111th"), (112, "112th"), (123, "123rd"), (0, "0th"),
    ])
    func `numbers of attempts are ordinals`(number: Int, text: String) {
        #expect(ConnectionText.ordinal(number) == text)
    }
}
