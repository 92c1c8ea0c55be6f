// SPDX-License-Identifier: Apache-2.0

import OrderedCollections
import TestSupport
import Testing

@testable import Daemon

@Suite("Ordered tables")
struct OrderedTableTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `it holds what an ordered dictionary holds, in the same order`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var (table, model) = (OrderedTable<Int, Int>(), OrderedDictionary<Int, Int>())
        for step in 0..<3000 {
            // Grows for a thousand steps, then shrinks, so that places are moved together.
            let key = Int.random(in: 0..<400, using: &random)
            let value = Int.random(in: 0..<(step < 1000 ? 4 : 40), using: &random) == 0 || step >= 2000 ? nil : step
            (table[key], model[key]) = (value, value)
            #expect(table[key] == model[key])
            guard table.keys == Array(model.keys), table.values == Array(model.values), table.count == model.count,
                table.isEmpty == model.isEmpty
            else {
                Issue.record("after step \(step): \(table.keys) is not \(model.keys)")
                return
            }
        }
        #expect(table.count < 100)
    }
}
