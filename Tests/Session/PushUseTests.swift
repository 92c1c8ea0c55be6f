// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtonePushAPI
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// `dialtone push use`, with a session agent that refuses what it reads.
@Suite struct PushUseTests {
    /// A session agent of which there is no more than Reload.
    @AgentQueue
    private final class Refuser {
        let server: VarlinkServer

        init(at path: String) throws {
            let service = VarlinkService(vendor: "Dialtone", product: "fake", version: "0", url: "https://example.org")
            service.add(interface: PushAPI.name, description: PushAPI.description)
            service.handle(PushAPI.Reload.self) { _, _ throws(VarlinkFailure) in
                throw VarlinkFailure(PushAPI.InvalidConfiguration(reason: "no"))
            }
            server = VarlinkServer(service)
            // For the user that the command runs as.
            try server.listen(at: path, mode: 0o666)
        }
    }

    @Test func `what is refused leaves the configuration and the password as they were`() async throws {
        var template = Array("/tmp/dialtone-XXXXXX".utf8CString)
        let home = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer { try? FileManager.default.removeItem(atPath: home) }
        let socket = "\(home)/session.sock"
        // Root's configuration would be the machine's.
        if geteuid() == 0 { chown(home, 65_534, 65_534) }
        let user = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : ""
        let (file, secret) = ("\(home)/dialtone/session.toml", "\(home)/dialtone/push-password")
        func use(_ password: String) -> Program.Result {
            Program.run(
                "/bin/sh",
                ["-c", "printf '%s\\n' \"$1\" | \(user)\"$2\" push use xmpp:a@example.com", "sh", password]
                    + ["\(OwnProgram.directory)/dialtone"],
                environment: [
                    "XDG_CONFIG_HOME": home, "HOME": home, "DIALTONE_SESSION_SOCKET": socket,
                    "PATH": "/usr/bin:/bin",
                ])
        }
        // Nobody is there to refuse it.
        let first = use("old")
        #expect(first.status == 0 && first.error.contains("systemctl --user start dialtone-session"), "\(first)")
        let before = try #require(FileContent.text(of: file), "\(first)")
        #expect(FileContent.text(of: secret) == "old")
        let refuser = try await onQueue { try Refuser(at: socket) }
        let result = use("new")
        #expect(result.status != 0, "\(result)")
        #expect(FileContent.text(of: secret) == "old", "\(result)")
        #expect(FileContent.text(of: file) == before)
        try FileManager.default.removeItem(atPath: "\(home)/dialtone")
        _ = use("new")
        #expect(FileContent.text(of: secret) == nil)
        #expect(FileContent.text(of: file) == nil)
        await onQueue { refuser.server.close() }
    }
}
