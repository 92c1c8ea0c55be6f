// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Foundation

extension PushStage {
    /// The push servers that a stage can have.
    enum Server {
        /// Debian's prosody with `mod_unified_push`.
        case prosody
        /// The stand-ins of `Tests/PushServers`, over PyPI's `websockets`.
        case autopush, ntfy

        /// How it is started, and what `session.toml` says of it.
        func recipe(_ files: TestFiles) -> (server: LabServer.Recipe, settings: String) {
            switch self {
            case .prosody: Prosody.recipe(files)
            case .autopush:
                (Self.standIn("autopush_standin.py"), "server = \"ws://\(address):\(StandIn.socketPort)/\"")
            case .ntfy: (Self.standIn("ntfy_standin.py"), "server = \"http://\(address):\(StandIn.socketPort)\"")
            }
        }

        private static func standIn(_ script: String) -> LabServer.Recipe {
            LabServer.Recipe(port: UInt16(StandIn.socketPort)) { machine in
                let process = try await machine.spawn([
                    PyPI.python ?? "", "-u", "\(SourceTree.root)/Tests/PushServers/\(script)", "--host", address,
                    "--ports", "\(StandIn.socketPort)", "\(StandIn.webPort)",
                ])
                _ = try await process.line(containing: "\(StandIn.socketPort) \(StandIn.webPort)")
                return process
            }
        }
    }

    static let address = LabNetwork.serverAddress(.v4)

    /// Where the stand-ins listen. The real ones have one port for both.
    enum StandIn {
        static let (socketPort, webPort) = (8080, 8081)
    }

    /// Asks a stand-in for something of its control, and gives the answer, JSON.
    func control(_ command: String) async throws -> String {
        let url = "http://\(Self.address):\(StandIn.webPort)/control/\(command)"
        let script = "import sys, urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], b'')).read().decode())"
        return try await lab.server.command(["/usr/bin/python3", "-c", script, url])
    }

    /// Prosody with an account, its push service, and nothing else.
    private enum Prosody {
        static let (user, domain, password) = ("juliet", "lab.example", "secret")

        static func recipe(_ files: TestFiles) -> (server: LabServer.Recipe, settings: String) {
            let authority = TestCertificate(.authority("Lab Authority"))
            let settings = """
                server = "xmpp:\(user)@\(domain)"
                host = "\(address):\(streamPort)"
                password_file = "\(files.write(password, to: "password"))"
                ca = "\(files.write(authority.pem, to: "authority.pem"))"
                """
            let certificate = TestCertificate(.init(domain, alternatives: "DNS:\(domain)"), issuer: authority)
            let texts = Data((certificate.chain + certificate.keyText()).utf8)
            let home = ServerHome { configuration($0) }
            let recipe = LabServer.Recipe(port: UInt16(streamPort)) { machine in
                try texts.write(to: URL(filePath: "\(home.directory)/server.pem"))
                _ = try await machine.command([
                    "prosodyctl", "--config", home.file, "register", user, domain, password,
                ])
                let process = try await machine.spawn(["prosody", "-F", "--config", home.file])
                _ = try await process.line(containing: "Activated service 'c2s_direct_tls' on")
                return process
            }
            return (recipe, settings)
        }

        private static func configuration(_ directory: String) -> String {
            """
            run_as_root = true
            data_path = "\(directory)"
            certificates = "\(directory)"
            plugin_paths = { "/usr/lib/prosody/modules", "/usr/share/prosody/modules" }
            modules_enabled = { "saslauth", "ping", "disco", "smacks", "tls", "http", "unified_push" }
            modules_disabled = { "s2s" }
            authentication = "internal_plain"
            c2s_ports = {}
            c2s_direct_tls_ports = { \(streamPort) }
            c2s_direct_tls_ssl = { certificate = "\(directory)/server.pem", key = "\(directory)/server.pem" }
            http_ports = { \(webPort) }
            http_interfaces = { "*" }
            https_ports = {}
            http_external_url = "http://\(address):\(webPort)/"
            http_host = "\(address)"
            smacks_hibernation_time = 600
            log = { { levels = { min = "info" }, to = "console" } }
            VirtualHost "\(domain)"
                ssl = { certificate = "\(directory)/server.pem", key = "\(directory)/server.pem" }

            """
        }
    }

    /// Where prosody speaks XMPP over TLS, and HTTP.
    static let (streamPort, webPort) = (5223, 5280)
}
