// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import CDialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// From the kernel's event to a line of `ip monitor`, read by whoever started it: the quickest that a script can hear
/// of it. The line has no verdict; it says what changed in the table.
enum IPMonitorProbe {
    static func measure() async throws -> Measurement {
        let network = try ProbeNetwork.build()
        var ends: [CInt] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw SystemError.last("making a pipe") }
        let lines = try Stamper(OwnedDescriptor(ends[0]), BENCH_MESSAGES)
        let writer = OwnedDescriptor(ends[1])
        let child = try Child(["ip", "monitor", "route"], output: writer.number)
        defer { withExtendedLifetime(child) {} }
        // The rounds of the warm-up are without a figure, so the monitor need not have started when they begin.
        return try await Rounds(count: 500, patience: .seconds(1)).measure(against: network.bare, lines) {
            try network.route.change(add: $0.isMultiple(of: 2))
        }
    }
}
