// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

/// Targets as people write them.
struct TargetTests {
    @Test(
        arguments: [
            ("sip.example.com", "sip.example.com", nil, nil), ("sip.example.com.:5061", "sip.example.com.", 5061, nil),
            ("192.0.2.1:80", "192.0.2.1", 80, nil), ("2001:db8::1", "2001:db8::1", nil, nil),
            ("[2001:db8::1]:80", "2001:db8::1", 80, nil), ("fe80::1%eth0", "fe80::1", nil, "eth0"),
            ("[fe80::1%wl-1.5]:53", "fe80::1", 53, "wl-1.5"), ("4.in-addr.arpa", "4.in-addr.arpa", nil, nil),
        ] as [(String, String, UInt16?, String?)])
    func `what is one is read`(text: String, host: String, port: UInt16?, interface: String?) throws {
        let target = try #require(Target(text: text))
        #expect(target.host == .init(host))
        #expect(target.port == port)
        #expect(target.interface == interface)
    }

    /// The last label of a name is not all digits (RFC 1123, section 2.1): these are mistyped addresses, which
    /// getaddrinfo(3) takes for others than most people would.
    @Test(arguments: [
        "", ".", "...", "a..b", ".a", "1.2.3", "010.0.0.1", "999.1.1.1", "1", "host.7", "192.0.2.1%eth0", "host%eth0",
        "2001:db8::1%eth0", "fe80::1%", "fe80::1%a/b", "fe80::1%longer-than-fifteen", "[fe80::1%eth0", "two words",
        "host:0", "host:65536", "[192.0.2.1]:80",
    ])
    func `what is none is refused`(text: String) {
        #expect(Target(text: text) == nil)
    }
}
