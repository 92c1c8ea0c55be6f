// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Testing

/// The example programs, which know the library's public product alone.
@Suite(.lab)
struct ExampleTests {
    @Test func `reachability-watch tells of the network and of a host as they change`() async throws {
        let machine = try await Namespace.island()
        try await machine.landBridge()
        // Line by line, as on a terminal.
        let program = try LabAgent.example("reachability-watch")
        let example = try await machine.spawn(["stdbuf", "-oL", program, "203.0.113.7", "5061"])
        _ = try await example.line(containing: "network: satisfied over bridge0 (virtual)")
        _ = try await example.line(containing: "flags:   true")
        let first = try await example.line(containing: "203.0.113.7: satisfied over bridge0 (virtual) []")
        _ = try await example.line(containing: "packets go from 198.51.100.2")
        try await machine.ip("link set bridge1 down")
        let loss = try await example.line(after: first, containing: "203.0.113.7: unsatisfied: noCarrier")
        #expect(loss.text.contains("\"status\", \"reason\""))
        try await machine.ip("link set bridge1 up")
        _ = try await example.line(after: loss, containing: "203.0.113.7: satisfied")
    }
}
