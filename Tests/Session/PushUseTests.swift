// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
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

    /// A place for the configuration of the user that the command runs as.
    private static func makeHome() throws -> String {
        var template = Array("/tmp/dialtone-XXXXXX".utf8CString)
        let home = try #require(mkdtemp(&template).map { String(cString: $0) })
        // Root's configuration would be the machine's.
        if geteuid() == 0 { chown(home, 65_534, 65_534) }
        return home
    }

    /// Runs the command. Its session agent would be at `session.sock` there.
    private static func use(_ password: String, in home: String) -> Program.Result {
        let user = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : ""
        return Program.run(
            "/bin/sh",
            ["-c", "printf '%s\\n' \"$1\" | \(user)\"$2\" push use xmpp:a@example.com", "sh", password]
                + ["\(OwnProgram.directory)/dialtone"],
            environment: [
                "XDG_CONFIG_HOME": home, "HOME": home, "DIALTONE_SESSION_SOCKET": "\(home)/session.sock",
                "PATH": "/usr/bin:/bin",
            ])
    }

    @Test func `what is refused leaves the configuration and the password as they were`() async throws {
        let home = try Self.makeHome()
        defer { try? FileManager.default.removeItem(atPath: home) }
        let (file, secret) = ("\(home)/dialtone/session.toml", "\(home)/dialtone/push-password")
        func use(_ password: String) -> Program.Result { Self.use(password, in: home) }
        // Nobody is there to refuse it.
        let first = use("old")
        #expect(first.status == 0 && first.error.contains("systemctl --user start dialtone-session"), "\(first)")
        let before = try #require(FileContent.text(of: file), "\(first)")
        #expect(FileContent.text(of: secret) == "old")
        let refuser = try await onQueue { try Refuser(at: "\(home)/session.sock") }
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

    @Test(arguments: [
        "[[notifications.rule]]\nevent = \"wake-failed\"\nshow = false\n", "[notifications]\n", "# mine\n",
        "unknown = \"x\"\n", "host = \"a:5222\" # \"mine\"\n",
    ])
    func `what a user added to the file is not lost, and the command says what is in its way`(
        addition: String
    ) throws {
        let home = try Self.makeHome()
        defer { try? FileManager.default.removeItem(atPath: home) }
        let (file, secret) = ("\(home)/dialtone/session.toml", "\(home)/dialtone/push-password")
        let first = Self.use("first", in: home)
        let second = Self.use("second", in: home)
        #expect(first.status == 0 && second.status == 0, "\(first), \(second): its own file it writes anew")
        // In its place, so that it stays the user's.
        let end = try #require(FileHandle(forWritingAtPath: file), "\(second)")
        try end.seekToEnd()
        try end.write(contentsOf: Data(addition.utf8))
        try end.close()
        let before = try #require(FileContent.text(of: file))
        #expect(before.hasSuffix(addition))
        let third = Self.use("third", in: home)
        let line = try #require(addition.split(separator: "\n").first)
        #expect(third.status != 0 && third.error.contains("\"\(line)\"") && third.error.contains("[push]"), "\(third)")
        expect(FileContent.text(of: file), is: before)
        expect(FileContent.text(of: secret), is: "second")
    }
}
