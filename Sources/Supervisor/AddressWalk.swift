// SPDX-License-Identifier: Apache-2.0

internal import NetworkPath

/// The addresses of one dial, tried one after the other in the resolver's order, and what became of those tried.
///
/// The one place that decides which address comes next and what the dial as a whole has failed of.
struct AddressWalk {
    /// An address that failed.
    struct Miss {
        let failure: FlowFailure
        let remote: Endpoint
    }

    /// The most addresses one dial tries. A zone can hold hundreds, and each dead one costs a connect timeout; eight
    /// cover both families of a service with four hosts.
    static let limit = 8

    /// The most telling failure so far.
    private(set) var miss: Miss?
    private var remaining: ArraySlice<IPAddress>

    init(_ addresses: [IPAddress]) {
        remaining = addresses.prefix(Self.limit)
    }

    /// The address to try now; `nil` when all were tried.
    mutating func next() -> IPAddress? {
        remaining.popFirst()
    }

    /// Notes that an address failed. Of several failures the first that the remote's side caused is kept, else the
    /// last: "refused" tells more than "no route" for the family that this network does not have.
    mutating func note(_ failure: FlowFailure, of remote: Endpoint) {
        if let miss, !miss.failure.isLocal { return }
        miss = Miss(failure: failure, remote: remote)
    }
}
