// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneVarlink
import Testing

/// What a later version of the agent may tell, read by this one; decision 0030.
@Suite struct LaterVersionTests {
    /// A reply of `Monitor` with these words in it.
    private func reply(
        kind: String, cause: String, state: String, reason: String, means: String, stage: String = "began"
    ) -> String {
        let connection = """
            {"name": "office", "remote": "tcp://192.0.2.7:1", "epoch": 1, "state": "\(state)", "holder": "daemon", \
            "session": "none", "since": "2026-01-02T03:04:05.678Z", "attempt": 0, "laterField": [1, {"deep": null}]}
            """
        return """
            {"sequence": 7, "kind": "change", "connections": [\(connection)], "event": {"sequence": 7, \
            "time": "2026-01-02T03:04:05.678Z", "kind": "\(kind)", "cause": "\(cause)", "connection": \(connection), \
            "wake": {"number": 1, "stage": "\(stage)", "reasons": ["\(reason)"], "means": "\(means)", "attempts": 1}}}
            """
    }

    @Test func `what may be added is passed on as it is`() throws {
        let text = reply(
            kind: "painted", cause: "boredom", state: "ready", reason: "music", means: "trumpet",
            stage: "dreamt")
        let read = try #require(ConnectionsAPI.Monitor.Reply(json: text.utf8), "\(text)")
        let event = try #require(read.event)
        #expect(event.kind.rawValue == "painted")
        #expect(event.cause?.rawValue == "boredom")
        #expect(event.wake?.reasons.map(\.rawValue) == ["music"])
        #expect(event.wake?.means?.rawValue == "trumpet")
        #expect(event.wake?.stage.rawValue == "dreamt")
    }

    @Test func `a later agent's life and a later step of an explanation are passed on as well`() throws {
        let entry = #"{"agent": {"time": "2026-01-02T03:04:05.678Z", "kind": "reborn"}}"#
        #expect(ConnectionsAPI.History.Reply(json: entry.utf8)?.agent?.kind.rawValue == "reborn", "\(entry)")
        let step = #"{"subject": "firewall", "text": "lets it pass", "decisive": false}"#
        #expect(NetworkAPI.Step(json: step.utf8)?.subject.rawValue == "firewall", "\(step)")
    }

    @Test func `a state that is none is no reply`() {
        let known = reply(kind: "state", cause: "connected", state: "ready", reason: "data", means: "event")
        #expect(ConnectionsAPI.Monitor.Reply(json: known.utf8) != nil, "\(known)")
        let unknown = reply(kind: "state", cause: "connected", state: "dreaming", reason: "data", means: "event")
        #expect(ConnectionsAPI.Monitor.Reply(json: unknown.utf8) == nil, "\(unknown)")
    }
}
