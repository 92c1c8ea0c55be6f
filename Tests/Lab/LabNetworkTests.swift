// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Testing

/// The Lab's network.
@Suite(.lab)
struct LabNetworkTests {
    @Test func `a failed command tells its words, its status and its complaint`() async throws {
        try await LabNetwork.with { lab in
            await #expect { try await lab.host.ip("link set nosuch up") } throws: { error in
                "\(error)" == "`ip link set nosuch up` ended with status 1: Cannot find device \"nosuch\""
            }
        }
    }
}
