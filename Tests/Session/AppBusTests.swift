// SPDX-License-Identifier: Apache-2.0

import DialtoneBus
import DialtoneDistributor
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneSession

private let object = "org.unifiedpush.Distributor.Dialtone"
private let key = "B" + String(repeating: "a", count: 86)
private let succeeded = #"["Distributor2.Register", {"success": "REGISTRATION_SUCCEEDED"}]"#

private func failed(_ reason: String) -> String {
    #"["Distributor2.Register", {"reason": "\#(reason)", "success": "REGISTRATION_FAILED"}]"#
}

/// Apps that register, by connectors of other people's making.
@Suite(.serialized) struct AppBusTests {
    @Test(arguments: kinds) func `the interfaces are those of the specification`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        // UnifiedPush's org.unifiedpush.Distributor2.xml and org.unifiedpush.Distributor1.xml, line by line.
        let noReply = #"["org.freedesktop.DBus.Method.NoReply=true"]"#
        #expect(
            desk.run("introspect") == [
                #"["org.unifiedpush.Distributor2", "Register", ["args:a{sv}"], ["res:a{sv}"], []]"#,
                #"["org.unifiedpush.Distributor2", "Unregister", ["args:a{sv}"], ["res:a{sv}"], []]"#,
                #"["org.unifiedpush.Distributor1", "Register", ["serviceName:s", "token:s", "description:s"], "#
                    + #"["registrationResult:s", "registrationResultReason:s"], []]"#,
                #"["org.unifiedpush.Distributor1", "Unregister", ["token:s"], [], \#(noReply)]"#,
                #"["org.freedesktop.DBus.Introspectable", "Introspect", [], ["xml_data:s"], []]"#,
            ])
        let tree = desk.busctl("tree", "--list", object)
        #expect(tree.split(separator: "\n").contains("/org/unifiedpush/Distributor"), "\(tree)")
    }

    @Test(arguments: kinds) func `an app registers by version 2`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        let arguments = """
            {"service": "org.example.App", "token": "t", "description": "Mail", "vapid": "\(key)",
             "org.dialtone.type": "voip", "org.example.unknown": "x"}
            """
        #expect(desk.run("own=org.example.App", "register2=\(arguments)").last == succeeded)
        let app = AppIdentity(name: "org.example.App", sandbox: nil)
        expect(
            await desk.owner.requests,
            is: [.init(app: app, token: "t", version: .v2, kind: .voip, summary: "Mail", vapid: key)])
    }

    @Test(arguments: kinds) func `an app registers by version 1`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        let long = String(repeating: "ä", count: 80)
        #expect(
            desk.run("own=org.example.App", "register1=org.example.App,t,\(long)").last
                == #"["Distributor1.Register", "REGISTRATION_SUCCEEDED", ""]"#)
        let app = AppIdentity(name: "org.example.App", sandbox: nil)
        expect(
            await desk.owner.requests,
            is: [
                .init(
                    app: app, token: "t", version: .v1, kind: .standard, summary: String(long.prefix(50)), vapid: nil)
            ])
        await onQueue { desk.owner.answer = .failed(.network, "no network") }
        #expect(
            desk.run("own=org.example.App", "register1=org.example.App,t,").last
                == #"["Distributor1.Register", "REGISTRATION_FAILED", "NETWORK"]"#)
    }

    @Test(arguments: kinds) func `nobody registers a name of another`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        try desk.begin("app.log", "own=org.example.App", "serve")
        try await eventually("the app serves") { desk.lines("app.log").last == #"["serves"]"# }
        for service in ["org.example.App", "org.example.Nobody", "org.freedesktop.DBus", "junk'", ":1.1", ""] {
            #expect(
                desk.run("own=org.example.Thief", #"register2={"service": "\#(service)", "token": "t"}"#).last
                    == failed("UNAUTHORIZED"), "\(service)")
        }
        // A caller that owns no name at all.
        let said = desk.gdbus(
            "call", "-d", object, "-o", "/org/unifiedpush/Distributor", "-m", "org.unifiedpush.Distributor2.Register",
            "{'service': <'org.example.App'>, 'token': <'t'>}")
        #expect(said.contains("'REGISTRATION_FAILED'") && said.contains("'UNAUTHORIZED'"), "\(said)")
        expect(await desk.owner.requests, is: [])
        expect(await desk.owner.refusals.count, is: 7)
    }

    @Test(arguments: kinds) func `nobody ends a registration of another`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        let app = AppIdentity(name: "org.example.App", sandbox: nil)
        await onQueue { desk.owner.registered = ["t": [.init(name: "org.example.Other", sandbox: nil), app]] }
        let answer = #"["Distributor2.Unregister", {}]"#
        // Whether the app runs or not.
        #expect(desk.run("own=org.example.Thief", "unregister2=t").last == answer)
        let process = try desk.begin("app.log", "own=org.example.App", "serve")
        try await eventually("the app serves") { desk.lines("app.log").last == #"["serves"]"# }
        #expect(desk.run("own=org.example.Thief", "unregister2=t").last == answer)
        #expect(desk.run("own=org.example.Thief", "unregister2=unknown").last == answer)
        expect(await desk.owner.ended, is: [])
        expect(await desk.owner.refusals.count, is: 2)
        process.end()
        #expect(desk.run("own=org.example.App", "unregister2=t").last == answer)
        #expect(desk.run("own=org.example.App", "unregister1=t").last == #"["Distributor1.Unregister"]"#)
        expect(await desk.owner.ended, is: ["org.example.App t", "org.example.App t"])
    }

    @Test(arguments: kinds, [(0, false), (1, true), (100, true), (101, false)])
    func `a token has 1 to 100 bytes`(_ kind: PrivateBus.Kind, _ length: (Int, isTaken: Bool)) async throws {
        let desk = try await Desk(kind)
        let token = String(repeating: "t", count: length.0)
        #expect(
            desk.run("own=org.example.App", #"register2={"service": "org.example.App", "token": "\#(token)"}"#).last
                == (length.isTaken ? succeeded : failed("INTERNAL_ERROR")))
        expect(await desk.owner.requests.map(\.token), is: length.isTaken ? [token] : [])
    }

    @Test(arguments: kinds) func `junk is refused`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        func call(_ version: Int, _ arguments: [String]) -> String {
            let result = Program.run(
                systemProgram("busctl") ?? "",
                [
                    "--address=\(desk.bus.address)", "call", object, "/org/unifiedpush/Distributor",
                    "org.unifiedpush.Distributor\(version)",
                ] + arguments)
            return result.output + result.error
        }
        let fails = [
            ["Register", "a{sv}", "0"], ["Register", "a{sv}", "1", "token", "u", "5"],
            ["Register", "a{sv}", "2", "service", "s", "org.example.App", "token", "ay", "1", "5"],
            ["Register", "a{sv}", "3", "service", "s", "a.b", "token", "s", "t", "org.dialtone.type", "s", "loud"],
            ["Register", "a{sv}", "3", "service", "s", "a.b", "token", "s", "t", "vapid", "s", "short"],
        ]
        for arguments in fails {
            let said = call(2, arguments)
            #expect(said.contains("REGISTRATION_FAILED") && said.contains("INTERNAL_ERROR"), "\(arguments): \(said)")
        }
        let refused = [
            ["Register"], ["Register", "s", "t"], ["Register", "a{ss}", "1", "token", "t"],
            ["Register", "a{sv}", "2", "token", "s", "t", "token", "s", "t"],
            ["Register", "a{sv}", "1", "token", "s", String(repeating: "t", count: 100_000)],
            ["Register", "a{sv}", "1", "token"] + Array(repeating: "v", count: 20) + ["s", "t"],
            ["Unregister", "u", "7"], ["Refresh"],
        ]
        for arguments in refused {
            let said = call(2, arguments)
            #expect(said.contains("Call failed"), "\(arguments.map { $0.prefix(10) }): \(said)")
        }
        #expect(call(3, ["Register"]).contains("no such interface"))
        #expect(call(1, ["Register", "ss", "org.example.App", "t"]).contains("Call failed"))
        expect(await desk.owner.requests, is: [])
        // And it still answers.
        #expect(
            desk.run("own=org.example.App", #"register2={"service": "org.example.App", "token": "t"}"#).last
                == succeeded)
    }

    @Test(arguments: kinds) func `a flood of one app is bounded`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        await onQueue { desk.owner.answer = nil }
        try desk.begin("flood.log", "own=org.example.Flood", "flood=40")
        let limit = #"["flood", "org.freedesktop.DBus.Error.LimitsExceeded"]"#
        try await eventually("24 calls are refused") { desk.lines("flood.log").count { $0 == limit } == 24 }
        try await eventually("the others are asked") { desk.owner.unanswered.count == AppBus.mostCallsOfSender }
        await onQueue { desk.owner.answer = .succeeded }
        #expect(
            desk.run("own=org.example.App", #"register2={"service": "org.example.App", "token": "t"}"#).last
                == succeeded)
        await onQueue {
            for answer in desk.owner.unanswered { answer(.succeeded) }
            desk.owner.unanswered = []
        }
        try await eventually("they are answered") { desk.lines("flood.log").count == 41 }
    }

    @Test(arguments: kinds) func `an app that registers again and again is paced, and others are not`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let desk = try await Desk(kind)
        let rounds = [#"register2={"service": "org.example.Loop", "token": "t"}"#, "unregister2=t"]
        let burst = RegistrationPacer.burst
        let said = desk.run(["own=org.example.Loop"] + Array(repeating: rounds, count: burst + 40).flatMap(\.self))
        #expect(said.count { $0 == succeeded } == burst)
        #expect(said.count { $0 == failed("INTERNAL_ERROR") } == 40, "\(said.suffix(3))")
        expect(await desk.owner.requests.count, is: burst)
        expect(await desk.owner.refusals.count, is: RefusalPacer.burst)
        #expect(
            desk.run("own=org.example.App", #"register2={"service": "org.example.App", "token": "t"}"#).last
                == succeeded)
        // By version 1 it is the same app.
        await onQueue { desk.owner.now = .seconds(60) }
        let later = desk.run(["own=org.example.Loop"] + Array(repeating: "register1=org.example.Loop,t,", count: 70))
        #expect(later.count { $0 == #"["Distributor1.Register", "REGISTRATION_SUCCEEDED", ""]"# } == 60)
        #expect(later.last == #"["Distributor1.Register", "REGISTRATION_FAILED", "INTERNAL_ERROR"]"#)
        expect(await desk.owner.refusals.last) { $0?.hasSuffix("(and 24 others since the last that was told)") == true }
        expect(await desk.owner.refusals.count, is: RefusalPacer.burst + 1)
    }

    @Test(arguments: kinds) func `an app registers what is registered as often as it likes`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let desk = try await Desk(kind)
        await onQueue { desk.owner.keeps = true }
        let again = Array(
            repeating: #"register2={"service": "org.example.App", "token": "t"}"#, count: RegistrationPacer.burst + 10)
        let said = desk.run(["own=org.example.App"] + again)
        #expect(said.count { $0 == succeeded } == again.count, "\(said.suffix(3))")
        expect(await desk.owner.refusals, is: [])
    }

    @Test(arguments: kinds) func `a bus that is killed and started again is served again`(
        _ kind: PrivateBus.Kind
    ) async throws {
        let desk = try await Desk(kind)
        await onQueue { desk.owner.answer = nil }
        try desk.begin(
            "app.log", "own=org.example.App", #"register2={"service": "org.example.App", "token": "late"}"#)
        try await eventually("a call waits") { desk.owner.unanswered.count == 1 }
        desk.bus.stop()
        try await eventually("the loss is told") { desk.owner.busNews == ["connected", "lost"] }
        expect(try await desk.tell("org.example.App", .newEndpoint("https://a")), is: .noBus)
        try await desk.bus.start()
        try await eventually("it is back") { desk.owner.busNews == ["connected", "lost", "connected"] }
        try await eventually("with its name") { desk.owner.states == [.owned, .owned] }
        await onQueue {
            // For a caller who is not there any more.
            for answer in desk.owner.unanswered { answer(.succeeded) }
            desk.owner.unanswered = []
            desk.owner.answer = .succeeded
        }
        #expect(
            desk.run("own=org.example.App", #"register2={"service": "org.example.App", "token": "t"}"#).last
                == succeeded)
    }

    @Test(arguments: kinds) func `apps that come and go are told`(_ kind: PrivateBus.Kind) async throws {
        let desk = try await Desk(kind)
        let first = try desk.begin("first.log", "own=org.example.First", "serve")
        try await eventually("it serves") { desk.lines("first.log").last == #"["serves"]"# }
        await onQueue { desk.apps.follow(["org.example.First", "org.example.Second"]) }
        try await eventually("it is there") { desk.owner.comings == ["org.example.First came"] }
        try desk.begin("second.log", "own=org.example.Second", "serve")
        try await eventually("the second came") { desk.owner.comings.last == "org.example.Second came" }
        first.end()
        try await eventually("the first went") { desk.owner.comings.last == "org.example.First went" }
        expect(await desk.owner.comings.count, is: 3)
    }
}
