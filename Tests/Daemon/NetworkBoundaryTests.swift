// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing
import Varlink

@testable import Daemon

@Suite struct NetworkBoundaryTests {
    @Test(
        arguments: [
            (true, false, false), (nil, false, false), (false, false, true), (false, true, false), (true, true, false),
        ] as [(Bool?, Bool, Bool)])
    func whoIsElsewhereIsRefusedUnlessAdmitted(isInSameNetwork: Bool?, isAdmitted: Bool, isRefused: Bool) async {
        let reason = await onQueue { () -> String? in
            let boundary = NetworkBoundary()
            if isAdmitted { boundary.admitted = [1000] }
            var peer = VarlinkPeer(uid: 1000, gid: 1000, pid: 1)
            peer.isInSameNetwork = isInSameNetwork
            return boundary.refusal(of: peer)
        }
        #expect((reason != nil) == isRefused, "\(reason ?? "admitted")")
        if let reason { #expect(reason.contains(#"other_namespaces = ["1000"]"#), "\(reason)") }
    }

    @Test func rootIsNoExceptionAndNumbersAndNamesAreRead() throws {
        let bench = try ConfigurationBench([
            "dialtone.toml": "[clients]\nother_namespaces = [\"0\", \"kiosk\", \"1002\"]\n"
        ])
        #expect(try bench.load().configuration.clients.otherNamespaces == [0, 1001, 1002])
        try bench.write("[clients]\nother_namespaces = [\"nobody-here\"]\n")
        #expect(bench.errors().contains { $0.contains("there is no user \"nobody-here\"") }, "\(bench.errors())")
    }
}
