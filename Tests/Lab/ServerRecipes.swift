// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Foundation
import Testing

extension LabServer.Recipe {
    /// mosquitto with TLS, or with a listener for WebSocket.
    static func mosquitto(port: UInt16, tls certificate: ServerCertificate) -> LabServer.Recipe {
        .mosquitto(port: port, settings: ["certfile \(certificate.chain)", "keyfile \(certificate.key)"])
    }

    /// mosquitto that speaks WebSocket.
    static func mosquittoOverWebSocket(port: UInt16) -> LabServer.Recipe {
        // Debian 12's counts no listener for WebSocket as one, and ends if there is no other.
        .mosquitto(port: port, settings: ["protocol websockets", "listener 1883"])
    }

    /// kamailio, which speaks SIP: over TCP, or over TLS where there is a certificate.
    ///
    /// - Parameters:
    ///   - settings: more lines of its configuration.
    ///   - route: what it does with a request; by default it does not answer.
    static func kamailio(
        port: UInt16 = 5060, tls certificate: ServerCertificate? = nil, settings: [String] = [],
        route: String = "exit;"
    ) -> LabServer.Recipe {
        var lines = [
            "#!KAMAILIO", "log_stderror=yes", "debug=1", "children=1", "tcp_children=1",
            // Nobody answers questions about names there.
            "auto_aliases=no", "dns=no", "rev_dns=no",
            "listen=\(certificate == nil ? "tcp" : "tls"):0.0.0.0:\(port)", "loadmodule \"xlog.so\"",
        ]
        if let certificate {
            lines += [
                "enable_tls=yes", "loadmodule \"tls.so\"", "modparam(\"tls\", \"tls_method\", \"TLSv1.2+\")",
                "modparam(\"tls\", \"certificate\", \"\(certificate.chain)\")",
                "modparam(\"tls\", \"private_key\", \"\(certificate.key)\")",
            ]
        }
        // Its workers begin when the sockets listen. Blank lines are answered before any route is asked.
        lines += settings
        lines += [
            "request_route { \(route) }", "event_route[core:worker-one-init] { xlog(\"L_ALERT\", \"open\\n\"); }",
        ]
        let home = ServerHome { _ in lines.joined(separator: "\n") + "\n" }
        return LabServer.Recipe(port: port) { machine in
            let options = ["-DD", "-E", "-f", home.file, "-Y", home.directory, "-m", "64", "-M", "4"]
            let process = try await machine.spawn(keptTogether(["kamailio"] + options))
            _ = try await process.line(containing: "<script>: open")
            return process
        }
    }

    /// kamailio that registers everybody over TCP, and writes from where each asked for it.
    static let registrar = kamailio(
        settings: ["sl", "pv", "usrloc", "registrar"].map { "loadmodule \"\($0).so\"" },
        route: #"if ($rm == "REGISTER") { xlog("L_ALERT", "registers from $si:$sp\n"); save("location"); } exit;"#)

    /// prosody, which speaks XMPP, for anybody who asks for it by an address or a name.
    ///
    /// - Parameters:
    ///   - user: who has an account; `nil` for nobody.
    ///   - password: the user's, which may be said in the clear.
    ///   - patience: after how many seconds of silence it sends a blank to see whether anybody is there; on a stream
    ///     with acknowledgements it asks for one, and hangs up after as many more.
    ///   - acknowledges: whether it has mod_smacks (XEP-0198).
    static func prosody(
        port: UInt16 = 5222, user: String? = nil, password: String = "", patience: Int = 840,
        acknowledges: Bool = false
    ) -> LabServer.Recipe {
        let home = ServerHome { directory in
            """
            run_as_root = true
            data_path = "\(directory)"
            certificates = "\(directory)"
            modules_enabled = { "saslauth", "ping"\(acknowledges ? ", \"smacks\"" : "") }
            modules_disabled = { "s2s", "tls" }
            c2s_require_encryption = false
            allow_unencrypted_plain_auth = true
            authentication = "internal_plain"
            c2s_ports = { \(port) }
            c2s_direct_tls_ports = {}
            network_settings = { read_timeout = \(patience) }
            log = { { levels = { min = "info" }, to = "console" } }
            VirtualHost "lab.example"

            """
        }
        return LabServer.Recipe(port: port) { machine in
            if let user {
                _ = try await machine.command(
                    ["prosodyctl", "--config", home.file, "register", user, "lab.example", password])
            }
            let process = try await machine.spawn(["prosody", "-F", "--config", home.file])
            _ = try await process.line(containing: "Activated service 'c2s' on")
            return process
        }
    }

    /// PyPI's `websockets`, which by itself asks each four seconds whether its client is there, and hangs up on one
    /// that does not answer within two. What one client says all others hear.
    static func websockets(port: UInt16, tls certificate: ServerCertificate? = nil) -> LabServer.Recipe {
        LabServer.Recipe(port: port) { machine in
            let files = certificate.map { [$0.chain, $0.key] } ?? []
            let process = try await machine.spawn(
                [PythonTests.python, "-u", "\(SourceTree.root)/Tests/Lab/asking_server.py", "\(port)"] + files)
            _ = try await process.line(containing: "serves")
            return process
        }
    }

    /// A program of many processes, of which one that is killed leaves the others: together with all of them it ends
    /// when it is asked to, is killed, or the test is. The first is the init of a process namespace; with that goes
    /// everything in it.
    private static func keptTogether(_ command: [String]) -> [String] {
        let script = """
            trap 'kill $(cat /proc/$main/task/$main/children)' TERM
            setpriv --pdeathsig KILL unshare --pid --fork --kill-child "$@" &
            main=$!
            wait $main
            wait $main
            """
        return ["sh", "-c", script, "sh"] + command
    }
}

/// Where the files are that a server shows itself by.
struct ServerCertificate: Sendable {
    let chain: String
    let key: String
}

/// A certificate for the Lab's server by its address, and the authority that vouches for it.
final class LabCertificate {
    let files: ServerCertificate
    /// The file with the authority's certificate.
    let authority: String
    private let folder = TestFiles()

    init() {
        let issuer = TestCertificate(.authority("Lab Authority"))
        let address = LabNetwork.serverAddress(.v4)
        var request = TestCertificate.Request("lab server", alternatives: "IP:\(address)")
        // A month: that it ends is no news.
        request.validity = -3600...30 * 86_400
        let certificate = TestCertificate(request, issuer: issuer)
        authority = folder.write(issuer.pem, to: "authority.pem")
        files = ServerCertificate(
            chain: folder.write(certificate.chain, to: "server.pem"),
            key: folder.write(certificate.keyText(), to: "server.key"))
    }
}

/// The configuration of a server and its directory, which go with the last who may start it.
final class ServerHome: Sendable {
    private let folder = TemporaryDirectory()
    var directory: String { folder.path }
    /// Named as prosody wants it.
    var file: String { "\(directory)/configuration.lua" }

    init(_ configuration: (_ directory: String) -> String) {
        // For a server that becomes another user.
        chmod(directory, 0o755)
        do {
            try folder.write(configuration(directory), to: "configuration.lua")
        } catch {
            preconditionFailure("no configuration for a server: \(error)")
        }
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips a test where a program is not installed, and says which.
    static func server(_ program: String) -> Self {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let isThere = path.split(separator: ":").contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
        }
        return .enabled(if: isThere, "\(program) is not installed")
    }
}
