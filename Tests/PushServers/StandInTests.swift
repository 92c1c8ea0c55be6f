// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtonePushServers

/// The values against servers over TCP.
@Suite struct StandInTests {
    private static let lacksPython: Comment = "PyPI's websockets is not here: scripts/python-varlink installs it"

    private func path(_ url: String) -> String { "/" + url.split(separator: "/").dropFirst(2).joined(separator: "/") }

    @Test(.enabled(if: StandIn.python != nil, lacksPython))
    func `autopush hands over a push, keeps it until it is settled, and forgets it then`() throws {
        let standIn = try #require(StandIn("autopush_standin.py"))
        let url = "ws://127.0.0.1:\(standIn.ports.webSocket)/"
        var driver = LoopbackDriver(try #require(AutopushServer(url: url)), port: standIn.ports.webSocket)
        driver.connect()
        driver.give(.register(registration(1), vapid: nil))
        let endpointCame = driver.endpoint(of: registration(1))
        let endpoint = try #require(endpointCame, "\(driver.reports)")
        let fields = ["TTL: 60", "Content-Encoding: aes128gcm", "Urgency: high"]
        #expect(standIn.post(path(endpoint), [1, 2, 3], fields).contains(" 201 "))
        let firstCame = driver.message()
        let first = try #require(firstCame)
        #expect(first.body == [1, 2, 3] && first.urgency == .high)
        // Not settled: it comes again, on a socket whose opening was played.
        let parking = try #require(driver.server.parking)
        let isLoggedIn = driver.playOpening(of: parking)
        #expect(isLoggedIn)
        #expect(driver.message() == first)
        driver.give(.settled(first.id, .taken))
        #expect(standIn.post(path(endpoint), [4], fields).contains(" 201 "))
        let secondCame = driver.message()
        let second = try #require(secondCame)
        #expect(second.body == [4])
        driver.give(.settled(second.id, .givenUp("expired")))
        // The server reads two sockets in no order.
        let isRead = (0..<1000).contains { _ in standIn.post("/control/state").contains("\"unacked\": 0") }
        #expect(isRead)
        driver.hangUp()
        // Another process, by what was saved.
        var next = LoopbackDriver(
            try #require(AutopushServer(url: url, memory: driver.memory)), port: standIn.ports.webSocket)
        next.connect()
        #expect(standIn.post(path(endpoint), [5], fields).contains(" 201 "))
        #expect(next.message()?.body == [5], "nothing else came before it")
        next.give(.unregister(registration(1), endpoint: endpoint))
        let ended: Bool? = next.report { $0 == .unregistered(registration(1)) ? true : nil }
        #expect(ended == true)
        #expect(standIn.post(path(endpoint), [6], fields).contains(" 410 "))
        let state = standIn.post("/control/state")
        #expect(state.contains("\"code\": 100") && state.contains("\"code\": 102"), "\(state)")
    }

    @Test(.enabled(if: StandIn.python != nil, lacksPython))
    func `autopush hands over what is stored behind the pushes of an app that takes none`() throws {
        let standIn = try #require(StandIn("autopush_standin.py"))
        let url = "ws://127.0.0.1:\(standIn.ports.webSocket)/"
        var driver = LoopbackDriver(try #require(AutopushServer(url: url)), port: standIn.ports.webSocket)
        driver.connect()
        var endpoints: [String] = []
        for number in 1...2 {
            driver.give(.register(registration(number), vapid: nil))
            let endpointCame = driver.endpoint(of: registration(number))
            endpoints.append(try #require(endpointCame, "\(driver.reports)"))
        }
        driver.hangUp()
        // The stand-in notices that in its own time, and stores what comes then.
        let fields = ["TTL: 60", "Content-Encoding: aes128gcm"]
        for number in 1...12 {
            #expect(standIn.post(path(endpoints[0]), [UInt8(number)], fields).contains(" 201 "))
        }
        #expect(standIn.post(path(endpoints[1]), [0], fields).contains(" 201 "))
        let isStored = (0..<1000).contains { _ in standIn.post("/control/state").contains("\"stored\": 13") }
        #expect(isStored)
        driver.connect()
        for number in 1...12 {
            let messageCame = driver.message()
            let message = try #require(messageCame)
            #expect(message.body == [UInt8(number)])
            // Two have no room; the others wait.
            driver.give(.settled(message.id, number < 11 ? .kept : .full("too much waits")))
        }
        let lastCame = driver.message()
        #expect(lastCame?.registration == registration(2))
    }

    @Test(.enabled(if: StandIn.python != nil, lacksPython))
    func `autopush forgets a client, which is told and registers anew`() throws {
        let standIn = try #require(StandIn("autopush_standin.py"))
        let url = "ws://127.0.0.1:\(standIn.ports.webSocket)/"
        var driver = LoopbackDriver(try #require(AutopushServer(url: url)), port: standIn.ports.webSocket)
        driver.connect()
        driver.give(.register(registration(1), vapid: nil))
        let endpointCame = driver.endpoint(of: registration(1))
        let endpoint = try #require(endpointCame)
        let parking = try #require(driver.server.parking)
        _ = standIn.post("/control/forget")
        let lost: Bool? = driver.report { if case .identityLost = $0 { true } else { nil } }
        #expect(lost == true)
        #expect(standIn.post(path(endpoint), [1], ["TTL: 60"]).contains(" 410 "))
        let isLoggedIn = driver.playOpening(of: parking)
        #expect(!isLoggedIn, "the opening expects the uaid before")
        driver.connect()
        driver.give(.register(registration(1), vapid: nil))
        let other = driver.endpoint(of: registration(1))
        #expect(other != nil && other != endpoint)
    }

    @Test(.enabled(if: StandIn.python != nil, lacksPython))
    func `ntfy hands over what came while nobody was there, once`() throws {
        let standIn = try #require(StandIn("ntfy_standin.py", ["--token", "tk_secret"]))
        let url = "http://127.0.0.1:\(standIn.ports.webSocket)"
        var driver = LoopbackDriver(
            try #require(NtfyServer(url: url, credentials: .token("tk_secret"))), port: standIn.ports.webSocket)
        driver.give(.register(registration(1), vapid: nil))
        driver.connect()
        let endpointCame = driver.endpoint(of: registration(1))
        let endpoint = try #require(endpointCame, "\(driver.reports)")
        #expect(standIn.post(path(endpoint), [0xFF, 1], ["Priority: 5"]).contains(" 200 "))
        let firstCame = driver.message()
        let first = try #require(firstCame)
        #expect(first.body == [0xFF, 1] && first.urgency == .high)
        // Stored and not sent, as if the socket had broken before.
        #expect(standIn.post(path(endpoint), Array("hold".utf8)).contains(" 200 "))
        let parking = try #require(driver.server.parking)
        let isLoggedIn = driver.playOpening(of: parking)
        #expect(isLoggedIn)
        #expect(driver.message()?.body == Array("hold".utf8))
        // Another set of topics, on another socket, which the value asks for.
        driver.give(.register(registration(2), vapid: nil))
        let otherCame = driver.endpoint(of: registration(2))
        let other = try #require(otherCame)
        #expect(standIn.post(path(other), Array("text".utf8)).contains(" 200 "))
        let thirdCame = driver.message()
        let third = try #require(thirdCame)
        #expect(third.body == Array("text".utf8) && third.registration == registration(2))
        // Another process, by what was saved.
        #expect(standIn.post(path(endpoint), Array("hold".utf8)).contains(" 200 "))
        var next = LoopbackDriver(
            try #require(NtfyServer(url: url, credentials: .token("tk_secret"), memory: driver.memory)),
            port: standIn.ports.webSocket)
        next.connect()
        #expect(next.message()?.body == Array("hold".utf8))
    }

    @Test(.enabled(if: StandIn.python != nil, lacksPython))
    func `ntfy refuses a client without its token`() throws {
        let standIn = try #require(StandIn("ntfy_standin.py", ["--token", "tk_secret"]))
        let url = "http://127.0.0.1:\(standIn.ports.webSocket)"
        var driver = LoopbackDriver(try #require(NtfyServer(url: url)), port: standIn.ports.webSocket)
        driver.give(.register(registration(1), vapid: nil))
        driver.connect()
        let reason: String? = driver.report { if case .loginRefused(let reason) = $0 { reason } else { nil } }
        #expect(reason?.contains("403") == true, "\(driver.reports)")
    }

    @Test(
        .enabled(if: StandIn.python != nil, lacksPython),
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/firefox-esr"), "firefox-esr is not here"))
    func `Firefox registers at autopush's stand-in, and is pushed to`() async throws {
        let result = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                let arguments = ["\(StandIn.folder)/firefox_push.py", "/usr/bin/firefox-esr"]
                continuation.resume(returning: Program.run(StandIn.python ?? "", arguments))
            }
        }
        #expect(result.status == 0, "\(result.output) \(result.error)")
    }
}
