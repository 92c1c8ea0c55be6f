// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import DialtoneVarlink
import Testing

/// Connections with TLS to real servers: mosquitto, and openssl's own.
@Suite(.lab)
struct SecuredStories {
    private static let address = LabNetwork.serverAddress(.v4)
    private static let broker = "mqtts://\(address)"
    private static let phone = "sips://\(address)"

    private let files = TestFiles()
    private let authority = TestCertificate(.authority("Lab Authority"))

    private var trust: ConnectionsAPI.TLS {
        .init(ca: files.write(authority.pem, to: "authority.pem"))
    }

    @Test(arguments: ["1.2", "1.3"])
    func `mosquitto is connected to, verified, and taken up again`(version: String) async throws {
        issue()
        try await LabNetwork.with { lab in
            _ = try await startBroker(on: lab.server, version: version)
            let (agent, events) = try await start(on: lab)
            try await open(Self.broker, on: agent, trust)
            let first = try await events.state(.ready, of: "office")
            #expect(first.previousState == .securing)
            #expect(first.connection.security?.assurance == .verified)
            #expect(first.connection.security?.version == version)
            #expect(first.connection.security?.isResumed == false)

            // With TLS 1.3 the ticket comes behind the handshake, and before the broker's first answer.
            let flow = try await agent.client.take("office")
            let client = ClientSocket(OwnedDescriptor(flow.release()))
            #expect(client.logIn("phone", topic: "bell"))
            let before = events.events.count
            try await agent.client.redial("office")
            let second = try await events.state(.ready, of: "office", after: before)
            #expect(second.connection.security?.isResumed == true)
            #expect(events.disorder == nil)
            // Closed before, it would have the broker end the flow, and the session with it.
            withExtendedLifetime(client) {}
        }
    }

    @Test func `a certificate that expired is told, waited with, and tried again on another path`() async throws {
        issue { $0.validity = -7200 ... -3600 }
        try await LabNetwork.with { lab in
            let broker = try await startBroker(on: lab.server)
            let (agent, events) = try await start(on: lab)
            try await open(Self.broker, on: agent, trust)
            let failed = try await events.state(.failed, of: "office")
            #expect(failed.reason?.contains("the certificate of lab server expired on 20") == true, "\(failed)")
            // The back-off of this connection ends at 200 ms.
            let wait = try #require(failed.connection.nextAttemptAt).milliseconds - failed.time.milliseconds
            #expect(wait >= 15 * 60_000)
            _ = try await agent.process.line(containing: "the server needs a new certificate")

            issue()
            try await broker.stop()
            _ = try await startBroker(on: lab.server)
            let before = events.events.count
            try await lab.preferDefaultRoute(via: .wan1)
            let ready = try await events.state(.ready, of: "office", after: before)
            #expect(ready.connection.interface == "wan1")
        }
    }

    @Test func `a certificate of another name is told with the names that it has`() async throws {
        issue { $0.alternatives = "DNS:broker.example.net" }
        try await LabNetwork.with { lab in
            _ = try await startBroker(on: lab.server)
            let (agent, events) = try await start(on: lab)
            try await open(Self.broker, on: agent, trust)
            let failed = try await events.state(.failed, of: "office")
            let words = "the certificate is not for \(Self.address) but for broker.example.net"
            #expect(failed.reason?.hasSuffix(words) == true, "\(failed)")
            _ = try await agent.client.close("office")

            // As an operator would, where the file is.
            let before = events.events.count
            try await lab.host.command([
                "env", "-C", files.directory, "DIALTONE_SOCKET=\(agent.socket)", LabAgent.program("dialtone"), "open",
                Self.broker, "--name", "office", "--ca", "authority.pem", "--server-name", "broker.example.net",
            ])
            try await events.state(.ready, of: "office", after: before)
        }
    }

    @Test func `an authority that is not the system's is told, and a pin can stand for it`() async throws {
        issue()
        try await LabNetwork.with { lab in
            _ = try await startBroker(on: lab.server)
            let (agent, events) = try await start(on: lab)
            try await open(Self.broker, on: agent, .init())
            let unknown = try await events.state(.failed, of: "office")
            #expect(unknown.reason?.hasSuffix("the certificate's issuer is not trusted here: Lab Authority") == true)
            _ = try await agent.client.close("office")

            // Someone else's key. What the server's is, is said.
            let stranger = "sha256/d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM="
            var before = events.events.count
            try await open(Self.broker, on: agent, .init(pins: [stranger], verify: false))
            let refused = try await events.state(.failed, of: "office", after: before)
            let found = refused.reason?.firstMatch(of: /the server's key is not pinned; its pin is (sha256\/[^ ]{44})$/)
            let pin = String(try #require(found, "\(refused)").1)
            _ = try await agent.client.close("office")

            before = events.events.count
            try await open(Self.broker, on: agent, .init(pins: [stranger, pin], verify: false))
            let ready = try await events.state(.ready, of: "office", after: before)
            #expect(ready.connection.security?.assurance == .pinned)
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a server that asks for a client certificate gets it, and nothing secret is told`(
        version: String
    ) async throws {
        issue()
        let kiosk = TestCertificate(.init("kiosk"), issuer: authority)
        let password = "open sesame 4711"
        var own = trust
        own.certificate = files.write(kiosk.chain, to: "own.pem")
        own.key = files.write(kiosk.keyText(password: password), to: "own.key")
        own.passwordFile = files.write("open barley\n", to: "password")
        try await LabNetwork.with { lab in
            let server = try await startServer(
                on: lab.server, "-Verify", "2", "-verify_return_error", "-CAfile", "\(files.directory)/authority.pem",
                version == "1.2" ? "-tls1_2" : "-tls1_3")
            let (agent, events) = try await start(on: lab)
            try await open(Self.phone, on: agent, trust)
            // With TLS 1.3 a client is done before the server has looked.
            let none = "the server wants a client certificate, and this connection has none"
            _ = try await events.event("that it wants one") { $0.reason?.contains(none) == true }
            _ = try await agent.client.close("office")

            var before = events.events.count
            try await open(Self.phone, on: agent, own)
            let locked = try await events.state(.failed, of: "office", after: before)
            #expect(locked.reason?.contains("own.key: cannot be decrypted by the password in") == true, "\(locked)")
            _ = try await agent.client.close("office")

            files.write(password + "\n", to: "password")
            before = events.events.count
            try await open(Self.phone, on: agent, own)
            try await events.state(.ready, of: "office", after: before)
            _ = try await server.line(containing: "CN = kiosk")

            // Whatever the log says at its most talkative, and whoever asks.
            let told =
                agent.process.lines.map(\.text) + events.told.map { "\($0.reply)" }
                + (try await agent.client.connections()).map { "\($0)" }
            let key = kiosk.keyText().split(separator: "\n").dropFirst().dropLast().map(String.init)
            for secret in [password, "open barley"] + key {
                #expect(!told.contains { $0.contains(secret) })
            }
        }
    }

    @Test func `openssl's server speaks the protocol, and its data and its end are understood`() async throws {
        issue()
        try await LabNetwork.with { lab in
            let server = try await startServer(on: lab.server, "-alpn", "sip/2")
            let (agent, events) = try await start(on: lab)
            try await open(Self.phone, on: agent, trust)
            let ready = try await events.state(.ready, of: "office")
            #expect(ready.connection.security?.applicationProtocol == "sip/2")
            // What it says is counted; "Q" ends the server, which says no word of its end.
            try server.send("INVITE\n")
            try await eventually("the seven bytes") { try await agent.client.connections().first?.unreadBytes == 7 }
            var before = events.events.count
            try server.send("Q\n")
            let ended = try await events.event("the flow's end", after: before) {
                $0.previousState == .ready && $0.connection.state != .ready
            }
            #expect(ended.reason == "the stream was cut off without TLS's end")
            _ = try await server.exit()

            before = events.events.count
            _ = try await startServer(on: lab.server, "-alpn", "h2")
            let failed = try await events.state(.failed, of: "office", after: before)
            #expect(failed.reason?.hasSuffix("the server does not speak sip/2 on this port") == true, "\(failed)")
        }
    }

    @Test func `a server of TLS 1 point 1 is refused in clear words`() async throws {
        issue()
        try await LabNetwork.with { lab in
            _ = try await startServer(on: lab.server, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
            let (agent, events) = try await start(on: lab)
            try await open(Self.phone, on: agent, trust)
            let failed = try await events.state(.failed, of: "office")
            #expect(failed.reason?.hasSuffix("the server does not speak TLS 1.2 or later") == true, "\(failed)")
        }
    }

    @Test(arguments: [Family.v4, .v6])
    func `its packets are marked as signaling from the first one on, its questions to DNS are not`(
        family: Family
    ) async throws {
        issue()
        try await LabNetwork.with { lab in
            _ = try await startBroker(on: lab.server)
            let marks = Marks(machine: lab.server, hook: "input", packets: "tcp dport 8883")
            let questions = Marks(machine: lab.host, hook: "output", packets: "udp dport 53")
            try await marks.count()
            try await questions.count("reject")
            let (agent, events) = try await start(on: lab)
            let address = LabNetwork.serverAddress(family)
            let remote = family == .v4 ? "mqtts://\(address)" : "mqtts://[\(address)]"
            try await open(remote, on: agent, .init(verify: false))
            try await events.state(.ready, of: "office")
            // The SYN, the acknowledgement of the answer to it, and the client's two flights of TLS 1.3.
            expect(try await marks.packets("signaling")) { $0 >= 4 }
            expect(try await marks.packets("other"), is: 0)
            expect(try await marks.packets("first"), is: 1)

            _ = try await agent.client.open(.init(remote: "tcp://sip.lab.example:1", name: "named"))
            try await eventually("a question") { try await questions.packets("other") > 0 }
            expect(try await questions.packets("signaling"), is: 0)
        }
    }

    // MARK: The stage

    /// Writes a certificate for the server that the authority vouches for, where servers look for it.
    private func issue(_ change: (inout TestCertificate.Request) -> Void = { _ in }) {
        var request = TestCertificate.Request("lab server", alternatives: "IP:\(Self.address)")
        change(&request)
        let certificate = TestCertificate(request, issuer: authority)
        files.write(certificate.chain, to: "server.pem")
        files.write(certificate.keyText(), to: "server.key")
    }

    private func start(on lab: LabNetwork) async throws -> (LabAgent, EventRecorder) {
        let agent = try await LabAgent.start(on: lab.host)
        return (agent, try await EventRecorder.start(on: agent))
    }

    private func open(_ remote: String, on agent: LabAgent, _ tls: ConnectionsAPI.TLS) async throws {
        _ = try await agent.client.open(
            .init(
                remote: remote, name: "office",
                settings: .init(backoff: .init(initial: .milliseconds(100), maximum: .milliseconds(200)), tls: tls)))
    }

    /// Starts mosquitto with the certificate that was issued last. It knows no newest version; OpenSSL does.
    private func startBroker(on machine: Namespace, version: String = "1.3") async throws -> LabServer {
        let library = files.write(
            """
            openssl_conf = all
            [all]
            ssl_conf = ssl
            [ssl]
            system_default = versions
            [versions]
            MaxProtocol = TLSv\(version)
            """, to: "openssl.cnf")
        let certificate = ["certfile \(files.directory)/server.pem", "keyfile \(files.directory)/server.key"]
        return try await .start(
            .mosquitto(port: 8883, settings: certificate, environment: ["OPENSSL_CONF": library]), on: machine)
    }

    private func startServer(on machine: Namespace, _ options: String...) async throws -> LabProcess {
        let server = try await machine.spawn(
            [
                "openssl", "s_server", "-accept", "5061", "-cert", "\(files.directory)/server.pem", "-cert_chain",
                "\(files.directory)/server.pem", "-key", "\(files.directory)/server.key",
            ] + options)
        _ = try await server.line(containing: "ACCEPT")
        return server
    }
}
