// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneTestSupport
import Foundation

/// A system bus of a test's own.
final class Bus: Sendable {
    static let isThere = ["/usr/bin", "/bin", "/usr/local/bin"].contains { access("\($0)/dbus-daemon", X_OK) == 0 }

    private let place = TemporaryDirectory()
    private var directory: String { place.path }

    /// Where the daemon finds it.
    var environment: [String: String] { ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(directory)/bus"] }

    init() throws {
        try place.write(
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
              "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <listen>unix:path=\(directory)/bus</listen>
              <policy context="default">
                <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
              </policy>
            </busconfig>
            """, to: "bus.conf")
    }

    func start(on machine: Namespace) async throws -> LabProcess {
        unlink("\(directory)/bus")
        let process = try await machine.spawn([
            "dbus-daemon", "--config-file=\(directory)/bus.conf", "--nofork", "--nopidfile", "--print-address",
        ])
        _ = try await process.line(containing: "unix:path")
        return process
    }

    func manager(on machine: Namespace, _ devices: String...) async throws -> Manager {
        let process = try await machine.spawn(
            [LabAgent.program("lab-network-manager")] + devices, environment: environment)
        _ = try await process.line(containing: "ready")
        return Manager(process: process)
    }

    /// Starts what stands for logind. See `Tests/LabLogind`.
    func logind(on machine: Namespace) async throws -> LabProcess {
        let process = try await machine.spawn([LabAgent.program("lab-logind")], environment: environment)
        _ = try await process.line(containing: "ready")
        return process
    }

    /// Starts what stands for systemd. See `Tests/LabSystemd`.
    ///
    /// - Parameter group: below which the units that it makes have control groups.
    func systemd(on machine: Namespace, group: String? = nil) async throws -> LabProcess {
        let process = try await machine.spawn(
            [LabAgent.program("lab-systemd")] + [group].compactMap(\.self), environment: environment)
        _ = try await process.line(containing: "ready")
        return process
    }

    struct Manager {
        let process: LabProcess

        func tell(_ commands: String...) throws {
            for command in commands { try process.send("\(command)\n") }
        }
    }
}
