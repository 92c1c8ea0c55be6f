// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

@Suite("Push in virtual time")
struct SimulationTests {
    @Test(arguments: seeds(60))
    func `nothing is lost, doubled or acknowledged unsaved, whatever happens`(seed: UInt64) {
        var world = PushWorld(seed: seed)
        world.run()
        // Five of sixty seeds end with an endpoint that the server does not have any more.
        let isKnown: (String) -> Bool = { $0.contains("the server has none") }
        withKnownIssue("docs/limitations.md: an endpoint that the server lost", isIntermittent: true) {
            #expect(world.faults.filter(isKnown) == [], "DIALTONE_SEED=\(seed)")
        }
        #expect(world.faults.filter { !isKnown($0) } == [], "DIALTONE_SEED=\(seed)")
        #expect(world.deliveries > 0, "DIALTONE_SEED=\(seed): nothing was delivered")
    }
}
