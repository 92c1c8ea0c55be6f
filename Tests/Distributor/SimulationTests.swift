// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

/// Push in virtual time.
@Suite struct SimulationTests {
    @Test(arguments: seeds(60))
    func `nothing is lost, doubled or acknowledged unsaved, whatever happens`(seed: UInt64) {
        var world = PushWorld(seed: seed)
        world.run()
        #expect(world.faults == [], "DIALTONE_SEED=\(seed)")
        #expect(world.deliveries > 0, "DIALTONE_SEED=\(seed): nothing was delivered")
    }
}
