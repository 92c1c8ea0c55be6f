// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// Clients of a real broker that do not run when a message comes, after several keepalives that the agent sent for
/// them. They are got to run by what fits, and answer every message in order. Their program is `mqtt_sleeper.py`.
@Suite(.lab, .server("mosquitto"))
struct WakingStories {
    @Test func `a client that is stopped is continued by a signal`() async throws {
        try await SleepingSubscriber.tell(wake: "signal = true") { sleeper in
            let client = try await sleeper.client("stay")
            try await client.stop()
            try await sleeper.wakes(by: .signal)
        }
    }

    @Test(.enabled(if: LabSandbox.isInside && GroupTree.isPossible, "no control groups of version 2 can be made here"))
    func `a client that is frozen is thawed`() async throws {
        let groups = try GroupTree()
        try await SleepingSubscriber.tell(wake: "thaw = true") { sleeper in
            let client = try await sleeper.client("stay")
            let group = try groups.make("client")
            try groups.put(client.processID, in: group)
            try await groups.freeze(group)
            try await sleeper.wakes(by: .thaw)
        }
    }

    @Test func `a client that has ended is launched, with the session that it left`() async throws {
        try await SleepingSubscriber.tell(wake: SleepingSubscriber.program) { sleeper in
            expect(try await sleeper.client("leave").exit(), is: .status(0))
            try await sleeper.wakes(by: .exec)
        }
    }

    @Test func `a client that has never run is launched, with a session that the file began`() async throws {
        try await SleepingSubscriber.tell(wake: SleepingSubscriber.program, hasOpening: true) { sleeper in
            try await sleeper.wakes(by: .exec)
        }
    }

    @Test(.enabled(if: Bus.isThere, "there is no dbus-daemon here"))
    func `a unit that has never run is started, and takes the socket for its program`() async throws {
        let bus = try Bus()
        try await SleepingSubscriber.tell(wake: "unit = \"good.service\"", hasOpening: true, on: bus) { sleeper in
            let systemd = try await bus.systemd(on: sleeper.lab.host)
            // What systemd does with `ExecStart=dialtone take office --fd -- …`, as often as it is asked to.
            let unit = Task {
                do {
                    var start: LabProcess.Line?
                    while true {
                        start = try await systemd.line(after: start, containing: "start good.service replace")
                        _ = try await sleeper.takeAndRead().exit()
                    }
                } catch {
                    if !Task.isCancelled { Issue.record(error) }
                }
            }
            defer { unit.cancel() }
            try await sleeper.wakes(by: .unit)
        }
    }

    @Test(.anotherUser) func `where the agent is not root, root's launcher launches the owner's program`() async throws
    {
        let launcher = try Launcher()
        let owner = "daemon"
        let user = try #require(getpwnam(owner)).pointee.pw_uid
        try await SleepingSubscriber.tell(
            wake: SleepingSubscriber.program, of: owner, hasOpening: true, as: launcher
        ) { sleeper in
            try await sleeper.wakes(by: .exec, as: user) { try await launcher.start(on: sleeper.lab.host) }
        }
    }
}
