// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation

/// A session bus on a machine of the Lab.
enum SessionBus {
    /// Starts one that listens on `bus` in a directory, and starts the programs of the files in `services` there.
    static func start(on machine: Namespace, in directory: String) async throws -> LabProcess {
        try Data(
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
              "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>session</type>
              <listen>unix:path=\(directory)/bus</listen>
              <servicedir>\(directory)/services</servicedir>
              <policy context="default">
                <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
              </policy>
            </busconfig>
            """.utf8
        ).write(to: URL(filePath: "\(directory)/bus.conf"))
        unlink("\(directory)/bus")
        let process = try await machine.spawn([
            "dbus-daemon", "--config-file=\(directory)/bus.conf", "--nofork", "--nopidfile", "--print-address",
        ])
        _ = try await process.line(containing: "unix:path")
        return process
    }
}
