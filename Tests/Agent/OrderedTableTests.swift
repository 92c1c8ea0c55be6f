// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import OrderedCollections
import Testing

@testable import DialtoneAgent
@testable import DialtonePersistence

/// Ordered tables.
@Suite struct OrderedTableTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `it holds what an ordered dictionary holds, in the same order`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var (table, model) = (OrderedTable<Int, Int>(), OrderedDictionary<Int, Int>())
        for step in 0..<900 {
            // Grows for three hundred steps, then shrinks, so that places are moved together.
            let key = Int.random(in: 0..<150, using: &random)
            let value = Int.random(in: 0..<4, using: &random) == 0 || step >= 300 ? nil : step
            (table[key], model[key]) = (value, value)
            #expect(table[key] == model[key])
            guard table.keys == Array(model.keys), table.values == Array(model.values), table.count == model.count,
                table.isEmpty == model.isEmpty
            else {
                Issue.record("after step \(step): \(table.keys) is not \(model.keys)")
                return
            }
        }
        #expect(table.count < 20)
    }
}
