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

    /// Whether an address may still be the server's. One of a private network is another machine's in the next network,
    /// which is not to be told a password.
    private func isGood(_ reached: Reached, _ now: Duration) -> Bool {
        guard now - reached.at <= Reached.validity else { return false }
        let isElsewhere = networkChangedAt.map { $0 > reached.at } ?? false
        return !isElsewhere || policy.tlsRequest != nil || !reached.remote.address.isPrivate
    }

    /// What a dial over `path` is made by.
    func dialSetting(over path: Path, now: Duration) -> Dial.Setting {
        let known = reached.flatMap { isGood($0, now) ? $0.remote : nil }
        return Dial.Setting(policy: policy, options: socketOptions, path: path, known: known)
    }
}
