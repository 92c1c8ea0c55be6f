// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import Glibc
import Testing

@testable import DialtoneNetlink

/// What the kernel tells of its per-interface settings (`RTM_NEWNETCONF`).
struct ConfigurationDecodingTests {
    @Test(arguments: [AF_INET, AF_INET6])
    func `the setting that routes are passed over by is an event`(family: CInt) {
        let settings = [NETCONFA_IFINDEX, NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN]
        #expect(events(configuration(family, settings)) == [.routeSelectionChanged])
    }

    @Test(arguments: [
        [NETCONFA_IFINDEX, NETCONFA_FORWARDING], [NETCONFA_IFINDEX, NETCONFA_RP_FILTER], [NETCONFA_IFINDEX], [],
    ])
    func `the others are none`(settings: [Int]) {
        #expect(events(configuration(AF_INET, settings)).isEmpty)
    }

    /// Containers that come and go make four such messages each.
    @Test func `those of a new interface are none`() {
        let all = [
            NETCONFA_IFINDEX, NETCONFA_FORWARDING, NETCONFA_RP_FILTER, NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN,
        ]
        #expect(events(configuration(AF_INET, all)).isEmpty)
        #expect(events(configuration(AF_INET, all, type: RTM_DELNETCONF)).isEmpty)
    }

    private func configuration(
        _ family: CInt, _ settings: [Int], type: Int = RTM_NEWNETCONF
    ) -> [UInt8] {
        let attributes = settings.flatMap { attribute($0, number: 1) }
        return message(type, netconfmsg(ncm_family: UInt8(family)), attributes)
    }
}
