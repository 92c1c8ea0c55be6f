// SPDX-License-Identifier: Apache-2.0

import DialtoneClient
import Glibc
import LabSupport
import Presentation

/// A network of namespaces on this machine, a real broker in it, and the agent's own account of what befalls them.
@main
enum Demo {
    /// The whole of it; each scene takes a second or two.
    private static let limit = Duration.seconds(60)

    static func main() async {
        if let obstacle = LabSandbox.obstacle {
            write("The demo needs a network of its own: \(obstacle)")
            exit(EX_UNAVAILABLE)
        }
        let playing = Task { try await play() }
        let watchdog = Task {
            try await Task.sleep(for: limit)
            write("The demo did not end within \(limit): a scene hangs.")
            exit(EXIT_FAILURE)
        }
        do {
            try await playing.value
            watchdog.cancel()
        } catch {
            write("The demo failed: \(error)")
            exit(EXIT_FAILURE)
        }
    }

    private static func play() async throws {
        try await LabNetwork.with { lab in
            // As a network manager would have it: a link without a carrier is not routed over.
            try await lab.host.sysctl([("net.ipv4.conf.all.ignore_routes_with_linkdown", "1")])
            let broker = try await Broker.start(on: lab.server)
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
