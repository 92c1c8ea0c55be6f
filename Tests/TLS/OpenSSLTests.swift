// SPDX-License-Identifier: Apache-2.0

import DialtoneTLSTestSupport
import Testing

@testable import DialtoneTLS

/// OpenSSL's tables stay when a process ends: a thread that is still inside would find their locks gone. Whoever uses
/// the library first decides it. Each case runs in a process of its own, for it happens once in each.
@Suite struct OpenSSLTests {
    @Test func `they stay where the relay comes first`() async {
        await #expect(processExitsWith: .success) {
            TLSContexts.prepare()
            OpenSSLExit.failWhereTablesGo()
        }
    }

    @Test func `they stay where a test makes a certificate first`() async {
        await #expect(processExitsWith: .success) {
            _ = TestCertificate(.init("example.com"))
            OpenSSLExit.failWhereTablesGo()
        }
    }
}
