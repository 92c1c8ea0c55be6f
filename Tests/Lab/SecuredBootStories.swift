// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneVarlink
import Foundation
import Testing

/// Connections with TLS to real servers, under a real systemd: what becomes of them when the agent is killed, and when
/// what has their keys is.
@Suite(
    "TLS under systemd", .booted, .server("mosquitto"), .server("kamailio"), .serialized, .timeLimit(.minutes(10)))
struct SecuredBootStories {
    private static let topic = "night"
    private static let names: Set = ["broker", "phone"]

    private let certificate = LabCertificate()

    /// A machine with both servers in its network, whose connections have logged in.
    private struct Stage {
        let machine: BootedMachine
        let servers: (LabServer, LabServer)
        let events: EventRecorder

        func publish(_ message: String) async throws {
            try await machine.network.command([
                "mosquitto_pub", "-h", "127.0.0.1", "-t", SecuredBootStories.topic, "-q", "1", "-m", message,
            ])
        }

        /// How many connections each server has.
        func peers() async throws -> [Int] {
            let all = try await machine.network.connections()
            return [8883, 5061].map { port in all.count { $0.port == port } }
        }
    }

    private func stage() async throws -> Stage {
        let machine = try await BootedMachine.boot("[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=50ms\n")
        let files = ["certfile \(certificate.files.chain)", "keyfile \(certificate.files.key)", "listener 1883"]
        let servers = (
            try await LabServer.start(.mosquitto(port: 8883, settings: files), on: machine.network),
            try await LabServer.start(.kamailio(port: 5061, tls: certificate.files), on: machine.network)
        )
        let events = try await EventRecorder.start(by: machine.client)
        _ = try await machine.client.open(
            .init(
                remote: "mqtts://127.0.0.1", name: "broker",
                settings: .init(opening: MQTT.opening("sleeper", topic: Self.topic), tls: .init(verify: false))))
        _ = try await machine.client.open(
            .init(remote: "sips://127.0.0.1", name: "phone", settings: .init(tls: .init(verify: false))))
        _ = try await events.event("the login") { $0.kind == .sessionOpened && $0.connection.name == "broker" }
        try await events.state(.ready, of: "phone")
        return Stage(machine: machine, servers: servers, events: events)
    }

    @Test func `mosquitto's and kamailio's flows outlive the agent, and no message is lost`() async throws {
        let stage = try await stage()
        let machine = stage.machine
        let before = try await stage.peers()
        var messages: [String] = []
        for count in 0..<BootStories.kills {
            let restarts = try await machine.property("NRestarts")
            messages.append("before \(count)")
            try await stage.publish(messages[messages.count - 1])
            try await machine.run("systemctl", "kill", "--signal=KILL", "--kill-who=main", "dialtoned.service")
            messages.append("meanwhile \(count)")
            try await stage.publish(messages[messages.count - 1])
            try await machine.restarted(since: restarts)
            // Five in a row that ended at once would be taken for the state's fault.
            try await Task.sleep(for: BootStories.lives[count % BootStories.lives.count])
        }
        let connections = try await machine.client.connections()
        #expect(connections.map(\.epoch) == [1, 1] && connections.allSatisfy { $0.state == .ready }, "\(connections)")
        expect(try await stage.peers(), is: before)
        let flow = try await machine.client.take("broker")
        let reader = ClientSocket(OwnedDescriptor(flow.release()))
        // Acknowledged by the reader alone: the broker sends so many and no more before that.
        #expect(reader.distinctMessages(messages.count) == messages)
        try await machine.turnOff()
    }

    @Test func `when what has the keys is killed, each is told, and logged in again`() async throws {
        let stage = try await stage()
        let taken = OwnedDescriptor(try await stage.machine.client.take("phone").release())
        for _ in 0..<3 {
            let count = stage.events.events.count
            let epochs = Dictionary(
                uniqueKeysWithValues: try await stage.machine.client.connections().map { ($0.name, $0.epoch) })
            // Not by systemctl: a machine that another test booted has control groups of the same names.
            try await stage.machine.run("pkill", "--signal", "KILL", "dialtone-tls")
            for name in Self.names {
                let ended = try await stage.events.event("\(name)'s end", after: count) {
                    $0.connection.name == name && $0.previousState == .ready && $0.connection.state != .ready
                }
                #expect(ended.reason == "dialtone-tls, which has the keys, ended")
                let ready = try await stage.events.state(.ready, of: name, after: count)
                #expect(ready.connection.epoch > epochs[name] ?? 0)
                print("\(name) is back after \(ready.time.milliseconds - ended.time.milliseconds) ms")
            }
            _ = try await stage.events.event("the login", after: count) {
                $0.kind == .sessionOpened && $0.connection.name == "broker"
            }
        }
        // Whoever had the flow does not take that for its end in order.
        var byte: UInt8 = 0
        #expect(recv(taken.number, &byte, 1, 0) == -1)
        #expect(errno == ECONNRESET)
        try await stage.publish("still there")
        let flow = try await stage.machine.client.take("broker")
        #expect(ClientSocket(OwnedDescriptor(flow.release())).nextMessage() == "still there")
        try await stage.machine.turnOff()
    }
}
