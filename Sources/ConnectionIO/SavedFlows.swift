// SPDX-License-Identifier: Apache-2.0

public import Connection
public import Platform

/// What of a connection's flows is known to outlive this process: what the next one needs to go on with them.
public struct SavedFlows: Hashable, Sendable {
    /// A flow that stands.
    public struct Standing: Hashable, Sendable {
        /// What there is to know of it. Its ``Adoption/past`` is set.
        public var adoption: Adoption
        /// Under which number the store has it; `nil` for one that ends with the process.
        public var number: UInt64?
        /// Whether it ends with the process because the keys of TLS do.
        public var isSecured: Bool

        /// A flow that stands.
        public init(adoption: Adoption, number: UInt64?, isSecured: Bool) {
            self.adoption = adoption
            self.number = number
            self.isSecured = isSecured
        }
    }

    /// A flow that ended, with bytes that its client has not read.
    public struct Ended: Hashable, Sendable {
        /// Its number among the connection's.
        public var epoch: UInt64
        /// Where it led.
        public var remote: Endpoint
        /// Under which number the store has it.
        public var number: UInt64

        /// A flow that ended.
        public init(epoch: UInt64, remote: Endpoint, number: UInt64) {
            self.epoch = epoch
            self.remote = remote
            self.number = number
        }
    }

    /// The highest number that a flow had; the next one's is above it.
    public var epoch: UInt64
    /// The one that stands.
    public var standing: Standing?
    /// Those that ended, the oldest first.
    public var ended: [Ended]

    /// Flows.
    public init(epoch: UInt64 = 0, standing: Standing? = nil, ended: [Ended] = []) {
        self.epoch = epoch
        self.standing = standing
        self.ended = ended
    }

    /// The numbers under which the store has them.
    public var numbers: [UInt64] { ended.map(\.number) + (standing?.number.map { [$0] } ?? []) }
}

extension ConnectionDriver {
    /// What of the flows outlives this process.
    public var keptFlows: SavedFlows {
        SavedFlows(
            epoch: connection.newestEpoch,
            standing: connection.adoption.map { adoption in
                let flow = flows[adoption.epoch]
                return .init(
                    adoption: adoption, number: flow?.storeNumber, isSecured: flow?.security != nil)
            },
            ended: connection.ownership.endedEpochs.compactMap { epoch in
                flows[epoch].flatMap { flow in
                    flow.storeNumber.map { .init(epoch: epoch, remote: flow.remote, number: $0) }
                }
            })
    }

    /// Whether a flow stands that the store was to have, and had no place for.
    public var lacksPlace: Bool {
        guard store != nil, let epoch = connection.standingEpoch, let flow = flows[epoch] else { return false }
        return flow.storeNumber == nil && flow.security == nil
    }

    /// Goes on where an earlier process stopped, in place of ``open()``.
    ///
    /// A flow that ended in between is taken for standing, and found to have ended in the next turn of the queue: so
    /// what follows is what always follows, back-off and unread bytes included.
    ///
    /// - Parameters:
    ///   - opening: what a client left to be played on the flows to come; `nil` for what the policy says.
    ///   - clientele: what it knew beside the flows.
    ///   - takeDescriptor: gives the descriptor that the store has under a number; `nil` where it has none.
    public func resume(
        _ kept: SavedFlows, _ clientele: Clientele = Clientele(), leaving opening: Opening? = nil,
        _ takeDescriptor: (UInt64) -> OwnedDescriptor?
    ) {
        var clientele = clientele
        let readers = Dictionary(clientele.ended.map { ($0.epoch, $0.reader) }) { first, _ in first }
        clientele.ended = []
        for ended in kept.ended {
            guard let store, let descriptor = takeDescriptor(ended.number) else { continue }
            let flow = Flow(
                ended: descriptor, epoch: ended.epoch, to: ended.remote, policy.socketOptions, owner: self)
            flow.isKept(in: store, as: ended.number)
            flows[ended.epoch] = flow
            clientele.ended.append(.init(epoch: ended.epoch, reader: readers[ended.epoch] ?? nil))
        }
        let resumption = resumption(kept, takeDescriptor)
        process(.restored(clientele, resumption, opening))
        // Nobody was there to hear that it went.
        if case .adopted(let adoption) = resumption, adoption.local.isAddressGone {
            process(.localAddressRemoved(adoption.local.address))
        }
    }

    /// What the next process is to know beside the flows.
    public var clientele: Clientele { connection.clientele }

    /// As ``Connection/processes``.
    public var processes: Set<KnownProcess> { connection.processes }

    private func resumption(_ kept: SavedFlows, _ takeDescriptor: (UInt64) -> OwnedDescriptor?) -> ConnectionInput {
        guard let standing = kept.standing else { return .reopened(epoch: kept.epoch, .withoutFlow) }
        let epoch = max(kept.epoch, standing.adoption.epoch)
        var adoption = standing.adoption
        adoption.past?.newestEpoch = epoch
        if standing.isSecured { return .reopened(epoch: epoch, .keysLost) }
        guard let store, let number = standing.number, let descriptor = takeDescriptor(number) else {
            return .reopened(epoch: epoch, .flowLost)
        }
        guard let flow = try? Flow(adopting: descriptor, adoption, policy.socketOptions, owner: self) else {
            store.discard(number)
            return .reopened(epoch: epoch, .flowLost)
        }
        flow.isKept(in: store, as: number)
        if adoption.ownership.session == .opening {
            flow.close(aborting: false)
            return .reopened(epoch: epoch, .openingCut)
        }
        flows[adoption.epoch] = flow
        return .adopted(adoption)
    }

    /// Ends this process's part in the connection, for the next process to go on. Flows that the store has are left as
    /// they are; what cannot be kept is closed in order. Nothing is told, and nothing happens afterwards.
    public func stepDown() {
        hasSteppedDown = true
        setTimer()
        for epoch in flows.keys { keepaliveSender.forget(epoch) }
        for flow in flows.values where flow.storeNumber == nil { flow.close(aborting: false) }
    }
}
