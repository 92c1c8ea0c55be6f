// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneHooks
import DialtonePlatform
import DialtoneVarlink
import Foundation
import Testing

/// What the agent says, and the changes that hooks are called with.
@Suite struct HookChangesTests {
    private typealias Monitor = ConnectionsAPI.Monitor.Reply

    private static let now = Timestamp(milliseconds: 1_800_000_000_000)

    private func connection(
        _ name: String, _ state: ConnectionsAPI.State = .connecting, isUp: Bool = false, owner: Int = 1000
    ) -> ConnectionsAPI.Connection {
        ConnectionsAPI.Connection(
            name: name, owner: owner, remote: "tcp://192.0.2.7:7000", epoch: 3, state: state, reason: "a reason",
            cause: .retryDue, holder: .daemon, session: .none, since: Self.now, interface: "eth0", attempt: 1,
            upSince: isUp ? Self.now : nil)
    }

    private func event(
        _ kind: ConnectionsAPI.EventKind, _ connection: ConnectionsAPI.Connection, wake: ConnectionsAPI.Wake? = nil
    ) -> Monitor {
        Monitor(
            sequence: 1, kind: .change, connections: [connection],
            event: .init(
                sequence: 1, time: Self.now, kind: kind, connection: connection, reason: "the event's",
                cause: .refused, wake: wake))
    }

    private func all(_ kind: Monitor.Kind, _ connections: ConnectionsAPI.Connection...) -> Monitor {
        Monitor(sequence: 1, kind: kind, connections: connections)
    }

    private func names(_ changes: [HookChange]) -> [String] { changes.map(\.name.rawValue) }

    @Test func `a connection's life calls each change once`() {
        var changes = HookChanges()
        #expect(names(changes.take(all(.snapshot, connection("old", isUp: true)))) == [], "what is, is no change")
        let steps: [(Monitor, [String])] = [
            (event(.opened, connection("a")), ["connection-opened"]),
            (event(.attemptBegan, connection("a")), []),
            (event(.state, connection("a", .ready, isUp: true)), ["connection-up"]),
            (event(.taken, connection("a", .ready, isUp: true)), []),
            (event(.state, connection("a", .verifying, isUp: true)), []),
            (event(.sessionOpened, connection("a", .ready, isUp: true)), ["session-opened"]),
            (event(.certificateEnds, connection("a", .ready, isUp: true)), ["certificate-ends"]),
            (event(.state, connection("a", .backingOff)), ["connection-down"]),
            (event(.state, connection("a", .failed)), ["connection-failed"]),
            (event(.openingFailed, connection("a", .failed)), ["opening-failed"]),
            (event(.state, connection("a", .ready, isUp: true)), ["connection-up"]),
            (event(.closed, connection("a", .closed)), ["connection-down", "connection-closed"]),
            (event(.opened, connection("a")), ["connection-opened"]),
            (event(.closed, connection("a", .closed)), ["connection-closed"]),
        ]
        for (reply, expected) in steps {
            #expect(names(changes.take(reply)) == expected, "\(String(describing: reply.event?.kind))")
        }
    }

    @Test func `of a wake, only that it failed is called`() {
        var changes = HookChanges()
        _ = changes.take(all(.snapshot, connection("a")))
        let wakes = [ConnectionsAPI.Wake.Stage.began, .attempted, .failed, .acknowledged].map { stage in
            changes.take(
                event(.wake, connection("a"), wake: .init(number: 1, stage: stage, reasons: [.data], attempts: 1)))
        }
        #expect(wakes.map(names) == [[], [], ["wake-failed"], []])
    }

    @Test(arguments: [Monitor.Kind.gap, .snapshot])
    fileprivate func `what was missed is called for the difference`(_ kind: ConnectionsAPI.Monitor.Reply.Kind) {
        var changes = HookChanges()
        _ = changes.take(
            all(
                .snapshot, connection("stays", isUp: true), connection("goes", isUp: true),
                connection("falls", isUp: true)))
        let missed = changes.take(
            all(kind, connection("stays", isUp: true), connection("falls"), connection("comes", .ready, isUp: true)))
        let told = missed.map { change in "\(change.name.rawValue) \(change.variables["DIALTONE_NAME"] ?? "")" }
        #expect(
            told == [
                "connection-down goes", "connection-closed goes", "connection-down falls", "connection-opened comes",
                "connection-up comes",
            ])
        #expect(
            names(changes.take(all(kind, connection("stays", isUp: true), connection("falls"))))
                == ["connection-down", "connection-closed"], "once")
    }

    @Test func `two users' connections of one name are two`() {
        var changes = HookChanges()
        _ = changes.take(all(.snapshot, connection("a", owner: 1), connection("a", owner: 2)))
        let up = changes.take(event(.state, connection("a", .ready, isUp: true, owner: 2)))
        #expect(up.map { $0.variables["DIALTONE_OWNER"] } == ["2"])
    }

    private func path(
        _ status: NetworkAPI.Status, gateway: String? = nil, generation: Int = 1, coherent: Bool = true,
        _ changes: [String] = []
    ) -> NetworkAPI.MonitorPath.Reply {
        .init(
            path: .init(
                generation: generation, status: status, coherent: coherent, gateway: gateway, isDirect: false,
                isLocalAddress: false, supportsIPv4: true, supportsIPv6: false, supportsDNS: false, expensive: false,
                constrained: false), changes: changes)
    }

    @Test func `the network comes, changes and goes`() {
        var changes = HookChanges()
        let steps: [(NetworkAPI.MonitorPath.Reply, String?)] = [
            (path(.unknown), nil), (path(.unsatisfied), nil), (path(.satisfied, gateway: "192.0.2.1"), "network-up"),
            (path(.satisfied, gateway: "192.0.2.1", generation: 2, coherent: false, ["coherent"]), nil),
            (path(.unknown), nil), (path(.satisfied, gateway: "192.0.2.1", generation: 9), nil),
            (path(.satisfied, gateway: "192.0.2.2", ["gateway"]), "network-changed"),
            (path(.requiresConnection), "network-down"), (path(.unsatisfied), "network-changed"),
        ]
        for (reply, name) in steps { #expect(changes.take(reply)?.name.rawValue == name, "\(reply)") }
    }

    @Test func `a hook finds the change in its environment and as JSON`() throws {
        var changes = HookChanges()
        _ = changes.take(all(.snapshot))
        let opened = changes.take(event(.opened, connection("a \"b\"")))
        let up = try #require(opened.first)
        #expect(
            up.variables == [
                "DIALTONE_CHANGE": "connection-opened", "DIALTONE_NAME": "a \"b\"", "DIALTONE_OWNER": "1000",
                "DIALTONE_REMOTE": "tcp://192.0.2.7:7000", "DIALTONE_STATE": "connecting", "DIALTONE_CAUSE": "refused",
                "DIALTONE_REASON": "the event's", "DIALTONE_EPOCH": "3", "DIALTONE_INTERFACE": "eth0",
            ])
        let object = try #require(try JSONSerialization.jsonObject(with: Data(up.json)) as? [String: Any])
        #expect(Set(object.keys) == ["change", "connection", "event"])
        #expect((object["connection"] as? [String: Any])?["name"] as? String == "a \"b\"")
        _ = changes.take(path(.unsatisfied))
        let change = changes.take(path(.satisfied, gateway: "192.0.2.1", ["status", "gateway"]))
        let network = try #require(change)
        #expect(
            network.variables == [
                "DIALTONE_CHANGE": "network-up", "DIALTONE_STATUS": "satisfied", "DIALTONE_GATEWAY": "192.0.2.1",
                "DIALTONE_CHANGES": "status gateway",
            ])
        let missed = changes.take(path(.unsatisfied))
        #expect(missed?.variables == ["DIALTONE_CHANGE": "network-down", "DIALTONE_STATUS": "unsatisfied"])
        let reply = try #require(try JSONSerialization.jsonObject(with: Data(network.json)) as? [String: Any])
        #expect((reply["network"] as? [String: Any])?["changes"] as? [String] == ["status", "gateway"])
    }
}
