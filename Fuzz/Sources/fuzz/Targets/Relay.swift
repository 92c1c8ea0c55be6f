// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection

@testable internal import DialtonePlatform
@testable internal import DialtoneRelayMessages

extension FuzzTarget {
    /// What the agent and `dialtone-tls` say to each other: either may be in a stranger's hands.
    static let relay = FuzzTarget(name: "relay") { bytes in
        if let word = try? RelayWord(bytes[...]) {
            precondition((try? RelayWord(word.encoded[...])) == word, "what was written cannot be read")
            if case .failed(.tls(let failure)) = word { _ = (failure.description, failure.advice) }
        }
        guard let request = try? SecuringRequest(bytes[...]) else { return }
        precondition((try? SecuringRequest(request.encoded[...])) == request, "what was written cannot be read")
        _ = request.descriptorCount
    }
}
