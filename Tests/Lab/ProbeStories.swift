// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTLSTestSupport
import Testing

/// `dialtone check --probe` and `dialtone wait`: what a server says for itself, where the route alone says nothing.
@Suite(.lab)
struct ProbeStories {
    private static let server = LabNetwork.serverAddress(.v4)

    private let files = TestFiles()
    private let authority = TestCertificate(.authority("Lab Authority"))

    private func dialtone(_ lab: LabNetwork, _ arguments: String...) async throws -> Outcome {
        let trust = files.write(authority.pem, to: "authority.pem")
        return try await lab.host.outcome(
            [LabAgent.program("dialtone")] + arguments, environment: ["SSL_CERT_FILE": trust])
    }

    private func startSecuredServer(on lab: LabNetwork, named name: String, _ options: String...) async throws
        -> LabProcess
    {
        var request = TestCertificate.Request("lab server", alternatives: name)
        request.validity = -3600...(10 * 86_400 + 3600)
        let certificate = TestCertificate(request, issuer: authority)
        files.write(certificate.chain, to: "server.pem")
        files.write(certificate.keyText(), to: "server.key")
        let server = try await lab.server.spawn(
            [
                "openssl", "s_server", "-accept", "5061", "-cert", "\(files.directory)/server.pem", "-key",
                "\(files.directory)/server.key",
            ] + options)
        _ = try await server.line(containing: "ACCEPT")
        return server
    }

    @Test func `a port that refuses has a route, and does not answer`() async throws {
        try await LabNetwork.with { lab in
            let route = try await dialtone(lab, "check", "\(Self.server):1")
            #expect(route.exit == .status(0), "\(route)")
            #expect(route.output.hasPrefix("Route available: \(Self.server):1 "), "\(route)")
            #expect(route.output.hasSuffix(" (nothing was sent)."), "\(route)")
            let answer = try await dialtone(lab, "check", "\(Self.server):1", "--probe")
            #expect(answer.exit == .status(1), "\(answer)")
            #expect(answer.output == "Not reachable: \(Self.server):1: refused.")
        }
    }

    @Test func `an address without a host has a route, and does not answer`() async throws {
        try await LabNetwork.with { lab in
            // The server's neighbour: its router asks in vain who that is.
            let answer = try await dialtone(lab, "check", "203.0.113.99:5061", "--probe")
            #expect(answer.exit == .status(1), "\(answer)")
            #expect(
                ["host unreachable", "no answer in time"].map { "Not reachable: 203.0.113.99:5061: \($0)." }
                    .contains(answer.output), "\(answer)")
        }
    }

    @Test func `a server with TLS answers with its certificate`() async throws {
        try await LabNetwork.with { lab in
            let server = try await startSecuredServer(on: lab, named: "IP:\(Self.server)")
            let answer = try await dialtone(lab, "check", "sips://\(Self.server)", "--probe")
            #expect(answer.exit == .status(0), "\(answer)")
            #expect(
                try answer.output.wholeMatch(
                    of: Regex(
                        #"Reachable: sips://203\.0\.113\.10 answered in [0-9.]+ ms, TLS 1\.3, "#
                            + "certificate verified, 10 days left."
                    )) != nil, "\(answer)")
            withExtendedLifetime(server) {}
        }
    }

    @Test func `a certificate of another name is told, and what speaks no TLS`() async throws {
        try await LabNetwork.with { lab in
            let server = try await startSecuredServer(on: lab, named: "DNS:else.example")
            let wrong = try await dialtone(lab, "check", "sips://\(Self.server)", "--probe")
            #expect(wrong.exit == .status(1), "\(wrong)")
            #expect(wrong.output.contains("else.example") && wrong.output.hasPrefix("Not reachable"), "\(wrong)")
            // Without a scheme that needs TLS, the connection is answer enough.
            let plain = try await dialtone(lab, "check", "\(Self.server):5061", "--probe")
            #expect(plain.exit == .status(0), "\(plain)")
            withExtendedLifetime(server) {}
            _ = try await LabServer.start(.mosquitto(port: 1883), on: lab.server)
            let other = try await dialtone(lab, "check", "mqtts://\(Self.server):1883", "--probe")
            #expect(other.exit == .status(1) && other.output.hasPrefix("Not reachable"), "\(other)")
            #expect(!other.output.contains("refused"), "\(other)")
        }
    }

    @Test func `wait --probe ends when the server begins to answer`() async throws {
        try await LabNetwork.with { lab in
            let waiting = try await lab.host.spawn([
                LabAgent.program("dialtone"), "wait", "\(Self.server):1883", "--probe",
            ])
            // It was refused at least once.
            while try await lab.dialsSeen() == 0, waiting.isRunning { try await Task.sleep(for: .milliseconds(10)) }
            #expect(waiting.isRunning)
            _ = try await LabServer.start(.mosquitto(port: 1883), on: lab.server)
            expect(try await waiting.exit(), is: .status(0), "\(waiting.text(of: .error))")
        }
    }

    @Test func `wait gives up at its timeout, and says why`() async throws {
        try await LabNetwork.with { lab in
            let outcome = try await dialtone(lab, "wait", "\(Self.server):1", "--probe", "--timeout", "5s")
            #expect(outcome.exit == .status(1), "\(outcome)")
            #expect(outcome.error == "dialtone: gave up on an answer of \(Self.server):1: refused", "\(outcome)")
        }
    }

    @Test func `a server that is silent holds up neither the timeout nor what else is to be told`() async throws {
        try await LabNetwork.with { lab in
            let silent = try await lab.server.spawn([
                "python3", "-c",
                "import socket as s, time; x = s.create_server(('', 5061)); print('up', flush=True); time.sleep(600)",
            ])
            _ = try await silent.line(containing: "up")
            let outcome = try await dialtone(lab, "wait", "sips://\(Self.server)", "--probe", "--timeout", "3s")
            #expect(outcome.exit == .status(1), "\(outcome)")
            // The probe itself would have said that there was no answer in time.
            #expect(outcome.error.hasSuffix("there was no verdict by then"), "\(outcome)")
        }
    }

    @Test func `a server that wants a certificate is not reachable without`() async throws {
        try await LabNetwork.with { lab in
            let server = try await startSecuredServer(
                on: lab, named: "IP:\(Self.server)", "-Verify", "1", "-verify_return_error")
            let answer = try await dialtone(lab, "check", "sips://\(Self.server)", "--probe", "--json")
            #expect(answer.exit == .status(1), "\(answer)")
            #expect(answer.output.contains("\"reachable\":false") && answer.output.contains("certificate"), "\(answer)")
            withExtendedLifetime(server) {}
        }
    }

    @Test func `wait --until-unreachable ends with the last route`() async throws {
        try await LabNetwork.with { lab in
            let stays = try await dialtone(lab, "wait", "\(Self.server)", "--until-unreachable", "--timeout", "5s")
            #expect(stays.exit == .status(1) && stays.error.hasSuffix(": there is a route"), "\(stays)")
            let waiting = try await lab.host.spawn([
                LabAgent.program("dialtone"), "wait", "\(Self.server)", "--until-unreachable",
            ])
            for uplink in Uplink.allCases { try await lab.removeDefaultRoute(via: uplink, families: [.v4]) }
            expect(try await waiting.exit(), is: .status(0), "\(waiting.text(of: .error))")
        }
    }

    @Test(arguments: [
        (["check", "h", "--probe"], "--probe takes a port"), (["wait", "--probe"], "--probe takes a host to ask"),
        (["check", "h:1", "--probe", "--explain"], "--explain and --without the kernel alone"),
        (["check", "h:1", "--probe", "--protocol", "udp"], "--probe asks by TCP"),
        (["wait", "h:1", "--probe", "--until-unreachable"], "leave --probe out"),
        (["check", "gopher://h"], "unknown scheme \"gopher\""),
        (["wait", "h", "--timeout", "1x"], "\"1x\" is invalid"),
    ])
    func `what makes no sense is bad usage`(arguments: [String], words: String) async throws {
        let machine = try await Namespace.island()
        let outcome = try await machine.outcome([LabAgent.program("dialtone")] + arguments)
        #expect(outcome.exit == .status(64) && outcome.error.contains(words), "\(outcome)")
    }
}

extension LabNetwork {
    /// How many segments the server's machine has reset because nobody listened (`OutRsts` of /proc/net/snmp).
    fileprivate func dialsSeen() async throws -> Int {
        let lines = try await server.outcome(["cat", "/proc/net/snmp"]).output.split(separator: "\n")
        let tables = lines.filter { $0.hasPrefix("Tcp:") }.map { $0.split(separator: " ") }
        guard tables.count == 2, let column = tables[0].firstIndex(of: "OutRsts") else { return 0 }
        return Int(tables[1][column]) ?? 0
    }
}
