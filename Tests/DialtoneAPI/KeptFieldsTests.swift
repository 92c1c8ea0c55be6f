// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtonePlatform
import Testing

@testable import DialtonePersistence

/// Objects that are kept.
@Suite struct KeptFieldsTests {
    @Test(arguments: [nil, ["fe80::1/64"], ["fe80::1/64", ""]])
    func `an array that need not be there comes back as it was, and one that must is empty`(
        deprecated: [String]?
    ) throws {
        let interface = NetworkAPI.Interface(
            index: 7, name: "wlan0", kind: .wifi, up: true, carrier: true, addresses: [], deprecated: deprecated,
            expensive: false, constrained: true)
        let kept: NetworkAPI.Interface = try KeptFieldReader.object(KeptFieldWriter.bytes(of: interface))
        #expect(kept == interface)
    }

    @Test func `what lacks anything else that must be there is damaged`() {
        #expect(throws: DamagedState.self) { () throws -> NetworkAPI.Interface in try KeptFieldReader.object([]) }
    }
}
