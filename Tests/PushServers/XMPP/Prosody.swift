// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

/// Debian's prosody with mod_unified_push, on loopback, and its data.
final class Prosody {
    private static let home = "/usr/lib/prosody/modules"

    /// Where it, or its module, is not installed tests are skipped with this comment.
    static let missing: Comment = "prosody with mod_unified_push is not installed (scripts/install-dependencies test)"

    static var isInstalled: Bool {
        access("/usr/bin/prosody", X_OK) == 0 && access("\(home)/mod_unified_push/mod_unified_push.lua", R_OK) == 0
    }

    /// Where XMPP is spoken, and HTTP.
    let (port, webPort): (UInt16, UInt16)
    private let place = TemporaryDirectory()
    private var directory: String { place.path }
    private let process: pid_t
    private let log: CInt

    /// Starts it with the account `juliet@lab.example`, whose password is `secret`, and waits until it serves.
    init() throws {
        let directory = place.path
        (port, webPort) = (try LoopbackListener(backlog: nil).port, try LoopbackListener(backlog: nil).port)
        try place.write("return { [\"password\"] = \"secret\" };", to: "lab%2eexample/accounts/juliet.dat")
        try place.write(Self.configuration(directory, port, webPort), to: "configuration.lua")
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { close(ends[1]) }
        log = ends[0]
        // It ends by itself if this process is killed.
        process = try Spawn.start(
            "starting prosody", "/usr/bin/timeout",
            [
                "timeout", "--signal=KILL", "120", "/usr/bin/prosody", "-F", "--config",
                "\(directory)/configuration.lua",
            ],
            inOwnGroup: true, descriptors: [(1, .descriptor(ends[1])), (2, .descriptor(ends[1]))])
        try waitFor(["Activated service 'c2s' on", "Activated service 'http' on"])
    }

    deinit {
        kill(-process, SIGKILL)
        var status: CInt = 0
        waitpid(process, &status, 0)
        close(log)
    }

    private func waitFor(_ words: [String]) throws {
        var (text, chunk) = ("", [UInt8](repeating: 0, count: 4096))
        while !words.allSatisfy({ text.contains($0) }) {
            let count = read(log, &chunk, chunk.count)
            try #require(count > 0, "prosody ended: \(text)")
            text += String(decoding: chunk.prefix(count), as: UTF8.self)
        }
    }

    private static func configuration(_ directory: String, _ port: UInt16, _ webPort: UInt16) -> String {
        """
        run_as_root = true
        data_path = "\(directory)"
        certificates = "\(directory)"
        plugin_paths = { "\(home)" }
        modules_enabled = { "saslauth", "ping", "disco", "smacks", "http", "unified_push" }
        modules_disabled = { "s2s", "tls" }
        c2s_require_encryption = false
        allow_unencrypted_plain_auth = true
        authentication = "internal_plain"
        c2s_interfaces = { "127.0.0.1" }
        c2s_ports = { \(port) }
        c2s_direct_tls_ports = {}
        http_interfaces = { "127.0.0.1" }
        http_ports = { \(webPort) }
        https_ports = {}
        http_default_host = "lab.example"
        http_external_url = "http://127.0.0.1:\(webPort)/"
        log = { { levels = { min = "info" }, to = "console" } }
        VirtualHost "lab.example"

        """
    }
}

/// A push of an app's server, whose answer is read when it is asked for.
struct Post {
    let socket: LoopbackSocket

    init(_ body: String, to endpoint: String, _ port: UInt16) throws {
        let path = try #require(endpoint.firstRange(of: "/push/").map { endpoint[$0.lowerBound...] })
        socket = try LoopbackSocket(port)
        let head = "POST \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        socket.send(Array((head + body).utf8))
    }

    /// The status of the answer, which is waited for.
    func status() throws -> Int? {
        let line = String(decoding: try socket.receive(), as: UTF8.self)
        return line.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }
}
