// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneSession

/// Which sandbox an app is in, and what it may register there.
@Suite struct SandboxTests {
    private static let information = """
        [Application]
        name=org.example.App
        runtime=runtime/org.kde.Platform/x86_64/6.8

        [Instance]
        name=not this one

        [Session Bus Policy]
        org.example.Helper.*=own
        org.mpris.MediaPlayer2.app=own
        org.freedesktop.Notifications=talk
        """

    @Test func `Flatpak's file says which app it is and what it may own`() {
        let sandbox = Sandbox.flatpak(Self.information)
        #expect(
            sandbox == .flatpak("org.example.App", owns: ["org.example.Helper.*", "org.mpris.MediaPlayer2.app"]))
        #expect(sandbox?.name == "flatpak:org.example.App")
        let names = [
            "org.example.App", "org.example.App.Child", "org.example.Application", "org.example.Helper",
            "org.example.Helper.x", "org.mpris.MediaPlayer2.app", "org.mpris.MediaPlayer2.app.x",
            "org.freedesktop.Notifications",
        ]
        #expect(names.filter { sandbox?.mayOwn($0) == true } == [names[0], names[1], names[3], names[4], names[5]])
        for text in [
            "", "[Application]\nruntime=x\n", "name=org.example.App", "[Runtime]\nname=x", "[Application]\nname=",
        ] {
            #expect(Sandbox.flatpak(text) == nil, "\(text)")
        }
    }

    @Test func `a snap is known by its label or its group`() {
        #expect(Sandbox.snap(label: "snap.firefox.firefox (enforce)\n") == "firefox")
        #expect(Sandbox.snap(label: "unconfined\n") == nil)
        #expect(Sandbox.snap(label: "snap..x (enforce)") == nil)
        #expect(Sandbox.snap(label: "snap.firefox (enforce)") == nil)
        let path = "0::/user.slice/user-1000.slice/user@1000.service/app.slice"
        #expect(Sandbox.snap(group: "1:name=systemd:/\n\(path)/snap.firefox.firefox-1b2c.scope\n") == "firefox")
        #expect(Sandbox.snap(group: "\(path)/app-gnome-firefox.scope\n") == nil)
    }

    @Test func `a process that ended is not taken for one without a sandbox`() throws {
        #expect(try Sandbox.of(UInt32(getpid())) == .none)
        for number in [0, UInt32.max, 4_194_304] {
            #expect(throws: Sandbox.Unseen.self, "\(number)") { try Sandbox.of(number) }
        }
    }

    /// What bubblewrap does for Flatpak, as far as it is looked at here.
    private static func flatpak(_ desk: Desk) -> [String] {
        desk.bus.write(information, to: "flatpak-info")
        let root = desk.bus.file("root")
        return [
            "/usr/bin/unshare", "--mount", "/bin/sh", "-ec",
            """
            mkdir \(root); mount -t tmpfs tmpfs \(root); cd \(root)
            for each in /*; do
                if [ -L $each ]; then cp -P $each .
                elif [ -d $each ]; then mkdir .$each; mount --rbind $each .$each; fi
            done
            cp \(desk.bus.file("flatpak-info")) .flatpak-info
            exec chroot . "$@"
            """, "sh",
        ]
    }

    @Test(.enabled(if: hasConnector && geteuid() == 0, "only root can give an app another root directory"))
    func `an app hears nothing of a registration by the same name that is not its own`() async throws {
        let desk = try await Desk(.daemon)
        try desk.begin("app.log", "own=org.example.App", "serve", within: Self.flatpak(desk))
        try await eventually("the app serves") { desk.lines("app.log").last == #"["serves"]"# }
        let refused = AppAnswer.notStarted("a program in another sandbox has its name")
        for other in [nil, "flatpak:org.example.Other", "snap:app"] {
            expect(
                try await desk.tell("org.example.App", .newEndpoint("https://a/b"), sandbox: other), is: refused)
        }
        expect(try await desk.tell("org.example.App", .message([1], id: "m"), sandbox: nil), is: refused)
        #expect(desk.lines("app.log").count == 2)
        for _ in 1...2 {
            let answer = try await desk.tell(
                "org.example.App", .newEndpoint("https://a/b"), sandbox: "flatpak:org.example.App")
            #expect(answer == .taken)
        }
        #expect(desk.lines("app.log").count == 4)
    }

    @Test(.enabled(if: hasConnector && geteuid() == 0, "only root can give an app another root directory"))
    func `an app of a Flatpak registers its own names only`() async throws {
        let desk = try await Desk(.daemon)
        try desk.begin(
            "app.log", "own=org.example.App", "own=org.example.Other",
            #"register2={"service": "org.example.App", "token": "t"}"#,
            #"register2={"service": "org.example.Other", "token": "t"}"#, within: Self.flatpak(desk))
        try await eventually("two answers") { desk.lines("app.log").count == 4 }
        #expect(
            desk.lines("app.log").dropFirst(2) == [
                #"["Distributor2.Register", {"success": "REGISTRATION_SUCCEEDED"}]"#,
                #"["Distributor2.Register", {"reason": "UNAUTHORIZED", "success": "REGISTRATION_FAILED"}]"#,
            ])
        expect(
            await desk.owner.requests.map(\.app),
            is: [AppIdentity(name: "org.example.App", sandbox: "flatpak:org.example.App")])
    }
}
