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

    /// The end, where it may still be the server's.
    ///
    /// - Parameter networkChangedAt: when the network last became another one.
    func end(at now: Duration, networkChangedAt: Duration?, under policy: ConnectionPolicy) -> Endpoint? {
        let isElsewhere = networkChangedAt.map { $0 > at } ?? false
        guard now - at <= Self.validity, !isElsewhere || policy.mayBeDialledElsewhere(remote.address) else {
            return nil
        }
        return remote
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
