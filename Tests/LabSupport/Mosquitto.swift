// SPDX-License-Identifier: Apache-2.0

extension LabServer.Recipe {
    /// mosquitto, which speaks MQTT.
    ///
    /// - Parameters:
    ///   - settings: more lines of its configuration for this port.
    ///   - environment: of its process.
    ///   - directory: where it keeps sessions, and what is queued for them, when it is asked to end; `nil` for nowhere.
    package static func mosquitto(
        port: UInt16 = 1883, settings: [String] = [], environment: [String: String] = [:],
        keeping directory: String? = nil
    ) -> LabServer.Recipe {
        // `user root`, since in a user namespace there is nobody else to become; no persistence, so that nothing of a
        // former run comes back.
        let kept = directory.map { ["persistence true", "persistence_location \($0)/"] } ?? ["persistence false"]
        let usual = ["allow_anonymous true", "user root", "log_dest stderr", "log_type all"] + kept
        let configuration = (["listener \(port)"] + settings + usual).joined(separator: "\n")
        return LabServer.Recipe(port: port) { machine in
            // From a shell's here-document, so that no file is left behind.
            let process = try await machine.spawn(
                ["sh", "-c", "exec mosquitto -c /dev/fd/3 3<<END\n\(configuration)\nEND"], environment: environment)
            _ = try await process.line(containing: "running")
            // A listener for WebSocket says nothing of a connection.
            if settings.contains("protocol websockets") { return process }
            // It says so shortly before its loop begins, and a signal in between is lost. Whom it has accepted knows.
            let probe = try await machine.run { try TCPSocket.connected(to: "127.0.0.1", port) }
            _ = try await process.line(containing: "New connection from 127.0.0.1:\(try probe.port())")
            return process
        }
    }
}
