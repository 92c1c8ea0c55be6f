// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneConnection

@Suite struct TrafficClassTests {
    @Test(arguments: [
        ("cs5", 0xA0, "cs5"), ("ef", 0xB8, "ef"), ("af41", 0x88, "af41"), ("af13", 0x38, "af13"), ("cs1", 0x20, "cs1"),
        ("cs7", 0xE0, "cs7"), ("va", 0xB0, "va"), ("le", 0x04, "le"), ("none", 0, "none"), ("0", 0, "none"),
        ("46", 0xB8, "ef"), ("0x2e", 0xB8, "ef"), ("63", 0xFC, "63"),
    ])
    func `a name or a number is a code point, which stands above ECN's two bits`(
        text: String, byte: UInt8, description: String
    ) {
        #expect(TrafficClass(text)?.byte == byte)
        #expect(TrafficClass(text)?.description == description)
    }

    @Test(arguments: ["", "cs0", "cs8", "af44", "af51", "EF", "64", "-1", "0x40", "signaling"])
    func `what is none is refused`(text: String) {
        #expect(TrafficClass(text) == nil)
    }

    @Test func `signaling is CS5 and interactive, unless the user says otherwise`() throws {
        var policy = ConnectionPolicy(remote: try Remote("sip://h"))
        #expect(policy.socketOptions.trafficClass.codePoint == 40)
        #expect(policy.socketOptions.priority == 6)
        policy.trafficClass = .unmarked
        policy.priority = 0
        #expect(policy.socketOptions.trafficClass == .unmarked && policy.socketOptions.priority == 0)
        for wrong in [-1, 7] {
            policy.priority = wrong
            #expect(throws: PolicyError.self) { try policy.validate() }
        }
    }
}
