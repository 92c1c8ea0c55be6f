// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import DialtoneClient
import DialtoneLabSupport
import DialtonePresentation
import Glibc

/// A network of namespaces on this machine, a real broker in it, and the agent's own account of what befalls them.
@main
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dialtone-demo",
        abstract: "Show what the agent makes of a bad day, in a network of namespaces on this machine.",
        discussion: "Run it as `make demo`, or as `scripts/in-lab dialtone-demo`. It ends by itself within a minute.")

    /// The whole of it; each scene takes a second or two.
    private static let limit = Duration.seconds(60)

    func run() async {
        if let obstacle = LabSandbox.obstacle {
            Self.write("The demo needs a network of its own: \(obstacle)")
            Self.end(EX_UNAVAILABLE)
        }
        let playing = Task { try await Self.play() }
        let watchdog = Task {
            try await Task.sleep(for: Self.limit)
            Self.write("The demo did not end within \(Self.limit): a scene hangs.")
            Self.end(EXIT_FAILURE)
        }
        do {
            try await playing.value
            watchdog.cancel()
        } catch {
            Self.write("The demo failed: \(error)")
            Self.end(EXIT_FAILURE)
        }
    }

    private static func end(_ status: CInt) -> Never {
        Glibc.exit(status)
    }

    private static func play() async throws {
        try await LabNetwork.with { lab in
            // As a network manager would have it: a link without a carrier is not routed over.
            try await lab.host.sysctl([("net.ipv4.conf.all.ignore_routes_with_linkdown", "1")])
            let broker = try await LabServer.start(.mosquitto(), on: lab.server)
            let agent = try await LabAgent.start(on: lab.host)
            let stage = Stage(lab: lab, broker: broker, agent: agent)
            try await stage.open()
            for scene in Scene.all { try await stage.play(scene) }
            stage.summarize()
        }
    }

    static func write(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = Glibc.write(STDOUT_FILENO, bytes, bytes.count)
    }
}
