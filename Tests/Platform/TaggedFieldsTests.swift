// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtonePlatform

/// Numbered fields.
@Suite struct TaggedFieldsTests {
    /// At each length the number of its own bytes changes.
    @Test(arguments: [0, 1, 127, 128, 16_383, 16_384])
    func `fields within a field are read as they were written, whatever their length`(count: Int) throws {
        let value = [UInt8](repeating: 0xA5, count: count)
        // The inner fields end on either side of such a length, too.
        for more in 0...4 {
            var inner = FieldWriter()
            inner.put(2, value)
            inner.put(3, [UInt8](repeating: 1, count: more))
            var nested = FieldWriter()
            nested.put(1) {
                $0.put(2, value)
                $0.put(3, [UInt8](repeating: 1, count: more))
            }
            nested.put(4, "after")
            var flat = FieldWriter()
            flat.put(1, inner.bytes)
            flat.put(4, "after")
            #expect(nested.bytes == flat.bytes)
            var fields = FieldReader(nested.bytes[...])
            let first = try #require(try fields.next())
            var within = try first.value.fields()
            #expect(try within.next()?.value.bytes() == value[...])
            #expect(try within.next()?.value.bytes().count == more)
            #expect(try within.next() == nil)
            #expect(try fields.next()?.value.text() == "after")
            #expect(try fields.next() == nil)
        }
    }
}
