// SPDX-License-Identifier: Apache-2.0

import LabSupport
import Platform
import Testing

@Suite("A namespace", .lab)
struct NamespaceTests {
    private struct Refusal: Error {}

    @Test func `hands out what its thread made, also what cannot be copied, and what it threw`() async throws {
        let machine = try await Namespace.create("a machine")
        let descriptor = try await machine.run { OwnedDescriptor(-1) }
        #expect(descriptor.number == -1)
        await #expect(throws: Refusal.self) { try await machine.run { throw Refusal() } }
    }

    @Test func `has its own kernel parameters`() async throws {
        let (one, other) = (try await Namespace.create("one"), try await Namespace.create("other"))
        try await one.sysctl([("net.ipv4.ip_forward", "1")])
        #expect(try await one.sysctl("net.ipv4.ip_forward") == "1")
        #expect(try await other.sysctl("net.ipv4.ip_forward") == "0")
        await #expect(throws: SystemError.self) { try await one.sysctl([("net.no.such.parameter", "1")]) }
    }

    @Test func `has a sysfs that shows its links`() async throws {
        try await LabNetwork.with { lab in
            let links = try await lab.router.command(["ls", "/sys/class/net"]).split(separator: "\n")
            withKnownIssue("this container forbids to mount sysfs", isIntermittent: true) {
                #expect(Set(links).isSuperset(of: ["eth0", "wan0", "wan1"]))
            } when: {
                links == ["lo"]
            }
        }
    }
}
