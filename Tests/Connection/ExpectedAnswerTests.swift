// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneConnection

/// Where a message ends, as its protocol tells.
@Suite struct ExpectedAnswerTests {
    private static let long = [UInt8](repeating: 7, count: 128)

    @Test(
        arguments: [
            ([], .beginning), ([0x20], .beginning), ([0x20, 2, 0], .beginning),
            ([0x20, 2, 0, 0, 9], .whole(length: 4)),
            ([0xD0, 0], .whole(length: 2)), ([0x30, 0x80, 0x01] + long + [9], .whole(length: 131)),
            ([0x30, 0x80, 0x01] + long.dropLast(), .beginning), ([0x0F, 0], .mismatch),
            ([0x30, 0xFF, 0xFF, 0xFF], .beginning), ([0x30, 0xFF, 0xFF, 0xFF, 0x80], .mismatch),
            ([0x30, 0xFF, 0xFF, 0xFF, 0x7F], .beginning),
        ] as [([UInt8], ExpectedAnswer.Match)])
    func `a control packet of MQTT`(bytes: [UInt8], match: ExpectedAnswer.Match) {
        #expect(ExpectedAnswer(.message(.mqtt)).match(bytes[...]) == match, "\(bytes)")
    }

    @Test(
        arguments: [
            ([], .beginning), ([0x81], .beginning), ([0x81, 2, 65], .beginning), ([0x81, 1, 65, 9], .whole(length: 3)),
            ([0x01, 0], .whole(length: 2)), ([0x82, 126, 0], .beginning),
            ([0x82, 126, 0, 128] + long, .whole(length: 132)),
            ([0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1, 65], .whole(length: 11)),
            ([0x82, 127] + [UInt8](repeating: 0xFF, count: 8), .mismatch),
            ([0x82, 127, 0x7F] + [UInt8](repeating: 0xFF, count: 7), .beginning), ([0x89, 125], .beginning),
            ([0x89, 126, 0, 1], .mismatch), ([0x09, 0], .mismatch), ([0x80, 0], .mismatch), ([0x83, 0], .mismatch),
            ([0x81, 0x81, 1, 2, 3, 4, 5], .mismatch),
        ] as [([UInt8], ExpectedAnswer.Match)])
    func `a frame of a server's WebSocket`(bytes: [UInt8], match: ExpectedAnswer.Match) {
        #expect(ExpectedAnswer(.message(.websocket)).match(bytes[...]) == match, "\(bytes)")
    }
}
