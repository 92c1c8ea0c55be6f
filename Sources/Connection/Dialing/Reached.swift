// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

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

    /// Whether an address may still be the server's.
    private func isGood(_ reached: Reached, _ now: Duration) -> Bool {
        guard now - reached.at <= Reached.validity else { return false }
        let isElsewhere = retry.networkChangedAt.map { $0 > reached.at } ?? false
        return !isElsewhere || policy.mayBeDialledElsewhere(reached.remote.address)
    }

    /// What a dial over `path` is made by.
    ///
    /// - Parameter isTrial: whether it is to show that something gets through on that way.
    func dialSetting(over path: Path, isTrial: Bool = false, now: Duration) -> Dial.Setting {
        let known = reached.flatMap { isGood($0, now) ? $0.remote : nil }
        return Dial.Setting(
            policy: policy, options: socketOptions, path: path, known: known,
            patience: isTrial ? nil : patience(with: path))
    }
}

extension ConnectionPolicy {
    /// Whether an address that is the server's in one network may be dialled in another. A private one is another
    /// machine's there, which is not to be told a password.
    func mayBeDialledElsewhere(_ address: IPAddress) -> Bool {
        !address.isPrivate || (identifiesServer && !address.isLinkLocal)
    }

    /// Whether a server shows who it is before it is told anything.
    private var identifiesServer: Bool {
        tlsRequest.map { $0.policy.verifiesCertificate || !$0.policy.pins.isEmpty } ?? false
    }
}
