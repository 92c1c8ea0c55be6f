// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Whether this process is where the Lab may be built: inside `scripts/in-lab`, away from the machine's own network.
package enum LabSandbox {
    /// Why the Lab may not be built here, and what to do; `nil` inside of the sandbox.
    ///
    /// `scripts/in-lab` leaves the name of the namespace it came from in `DIALTONE_LAB`; whoever is still in that one,
    /// or never went through the script, would be in the machine's own network.
    package static let obstacle: String? = {
        let advice = "run `make test`, or `scripts/in-lab swift test`"
        guard let outside = getenv("DIALTONE_LAB").map({ String(cString: $0) }) else {
            return "not inside of the Lab's sandbox: \(advice)"
        }
        guard let inside = link("/proc/self/ns/net") else {
            return "/proc/self/ns/net cannot be read, so the network this would touch is not known"
        }
        return inside == outside ? "DIALTONE_LAB is set, but this is the machine's own network: \(advice)" : nil
    }()

    /// Whether the Lab may be built here.
    package static var isInside: Bool { obstacle == nil }

    private static func link(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = readlink(path, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }
}
