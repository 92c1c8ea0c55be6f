// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath

/// Where a server of the remote's name was last reached.
struct Reached: Hashable {
    /// How long an address is dialled that no name server confirms any more. RFC 8767, section 5, has resolvers answer
    /// from one to three days with what they last knew.
    static let validity = Duration.seconds(86_400)

    /// The flow's remote end.
    let remote: Endpoint
    /// When it last answered.
    let at: Duration
}

extension ConnectionStateMachine {
    /// A server has answered on this flow, to a login where there is one.
    mutating func noteReached(_ ready: Ready) {
        guard case .name = policy.remote.host, ready.settledAt != nil else { return }
        reached = Reached(remote: ready.remote, at: ready.liveness.lastProof)
    }

    /// What a dial over `path` is made by.
    func dialSetting(over path: Path, now: Duration) -> Dial.Setting {
        let known = reached.flatMap { now - $0.at <= Reached.validity ? $0.remote : nil }
        return Dial.Setting(policy: policy, options: socketOptions, path: path, known: known)
    }
}
