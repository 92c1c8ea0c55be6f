// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Testing

@Suite struct SocketPathTests {
    private static let system = "/run/dialtone/dialtone.sock"
    private static let session = "/run/user/1000/dialtone/dialtone.sock"
    private static let runtime = ["XDG_RUNTIME_DIR": "/run/user/1000"]

    @Test(
        arguments: [
            (0, [:], [system]),
            (0, runtime, [system]),
            (1000, runtime, [session, system]),
            (1000, [:], [system]),
            (1000, ["XDG_RUNTIME_DIR": ""], [system]),
            (0, ["DIALTONE_SOCKET": "/tmp/x"], ["/tmp/x"]),
            (1000, runtime.merging(["DIALTONE_SOCKET": "/tmp/x"]) { $1 }, ["/tmp/x"]),
            (1000, runtime.merging(["DIALTONE_SOCKET": ""]) { $1 }, [session, system]),
        ] as [(UInt32, [String: String], [String])])
    func `clients look where they are told`(uid: UInt32, environment: [String: String], paths: [String]) {
        #expect(SocketPath.ofClient(uid: uid, environment: environment) == paths)
    }

    @Test func `the daemon listens where its clients look first`() {
        #expect(SocketPath.ofDaemon(uid: 0, environment: Self.runtime) == Self.system)
        #expect(SocketPath.ofDaemon(uid: 1000, environment: Self.runtime) == Self.session)
        #expect(SocketPath.ofDaemon(uid: 1000, environment: [:]) == nil)
    }
}
