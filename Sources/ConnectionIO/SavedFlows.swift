// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
internal import DialtonePlatform
package import DialtoneRelayMessages

/// What of a connection's flows is known to outlive this process: what the next one needs to go on with them.
package struct SavedFlows: Hashable, Sendable {
    /// A flow that stands.
    package struct Standing: Hashable, Sendable {
        /// What there is to know of it. Its ``Adoption/past`` is set.
        package var adoption: Adoption
        /// Under which number the store has it; `nil` for one that ends with the process.
        package var number: UInt64?
        /// Of one with TLS, where it is counted how far it is.
        package var place: StreamCounts.Place?

        /// A flow that stands.
        package init(adoption: Adoption, number: UInt64?, place: StreamCounts.Place? = nil) {
            self.adoption = adoption
            self.number = number
            self.place = place
        }
    }

    /// A flow that ended, with bytes that its client has not read.
    package struct Ended: Hashable, Sendable {
        /// Its number among the connection's.
        package var epoch: UInt64
        /// Where it led.
        package var remote: Endpoint
        /// Under which number the store has it.
        package var number: UInt64
        /// As of one that stands.
        package var place: StreamCounts.Place?

        /// A flow that ended.
        package init(epoch: UInt64, remote: Endpoint, number: UInt64, place: StreamCounts.Place? = nil) {
            self.epoch = epoch
            self.remote = remote
            self.number = number
            self.place = place
        }
    }

    /// The highest number that a flow had; the next one's is above it.
    package var epoch: UInt64
    /// The one that stands.
    package var standing: Standing?
    /// Those that ended, the oldest first.
    package var ended: [Ended]

    /// Flows.
    package init(epoch: UInt64 = 0, standing: Standing? = nil, ended: [Ended] = []) {
        self.epoch = epoch
        self.standing = standing
        self.ended = ended
    }

    /// The numbers under which the store has them.
    package var numbers: [UInt64] { ended.map(\.number) + (standing?.number.map { [$0] } ?? []) }
}

extension SavedFlows {
    /// What the core goes on with.
    ///
    /// - Parameter clients: as it was saved; ended flows of which it says nothing wait for whoever comes.
    package func saved(
        _ clients: Clientele, leaving opening: Opening? = nil, answering answers: AnsweredMessages? = nil
    ) -> Connection.Saved {
        var clientele = clients
        clientele.ended = ended.map { flow in
            clients.ended.first { $0.epoch == flow.epoch } ?? .init(epoch: flow.epoch, reader: nil, left: nil)
        }
        return Connection.Saved(
            standing: standing?.adoption, newestEpoch: epoch, clientele: clientele, opening: opening, answers: answers)
    }
}

extension ConnectionDriver {
    /// What the next process needs; see ``Connection/saved(knowing:)``.
    package func saved(knowing processes: Set<KnownProcess>) -> Connection.Saved {
        connection.saved(knowing: processes)
    }

    /// As ``Connection/left``.
    package var left: (opening: Opening?, answers: AnsweredMessages?) { connection.left }

    /// Where the flows are that outlive this process.
    package func storedFlows(of saved: Connection.Saved) -> SavedFlows {
        SavedFlows(
            epoch: saved.newestEpoch,
            standing: saved.standing.map { adoption in
                let flow = flows[adoption.epoch]
                return .init(adoption: adoption, number: flow?.storeNumber, place: flow?.secured?.place)
            },
            ended: saved.clientele.ended.compactMap { ended in
                guard let flow = flows[ended.epoch], let number = flow.storeNumber else { return nil }
                return .init(epoch: ended.epoch, remote: flow.remote, number: number, place: flow.secured?.place)
            })
    }

    /// Whether a flow stands that the store was to have, and had no place for.
    package var lacksPlace: Bool {
        guard store != nil, let epoch = connection.standingEpoch, let flow = flows[epoch] else { return false }
        return flow.storeNumber == nil
    }

    /// Goes on where an earlier process stopped, in place of ``open()``.
    ///
    /// A flow that ended in between is taken for standing, and found to have ended in the next turn of the queue: so
    /// what follows is what always follows, back-off and unread bytes included.
    ///
    /// - Parameters:
    ///   - kept: where the flows are.
    ///   - saved: what else is known (``SavedFlows/saved(_:leaving:answering:)``).
    ///   - takeDescriptors: gives the descriptors that the store has under a number.
    package func resume(
        _ kept: SavedFlows, _ saved: Connection.Saved, _ takeDescriptors: (UInt64) -> [CInt]
    ) {
        guard let store else { return process(.restored(saved, with: [])) }
        for ended in kept.ended {
            var left = StoredFlow(takeDescriptors(ended.number), at: ended.place, for: user, by: context.relay)
            guard let socket = left.takeSocket() else {
                store.discard(ended.number)
                continue
            }
            let secured = left.secured
            let flow = Flow(
                ended: secured == nil ? socket.shared(with: user) : socket, secured: secured, epoch: ended.epoch,
                to: ended.remote, policy.socketOptions, owner: self)
            flow.isKept(in: store, as: ended.number)
            flows[ended.epoch] = flow
        }
        if let standing = kept.standing, let number = standing.number {
            var left = StoredFlow(takeDescriptors(number), at: standing.place, for: user, by: context.relay)
            if let socket = left.takeSocket(),
                let flow = try? Flow(
                    adopting: socket, standing.adoption, policy.socketOptions, secured: left.secured, owner: self)
            {
                flow.isKept(in: store, as: number)
                flows[flow.epoch] = flow
            } else {
                store.discard(number)
            }
        }
        process(.restored(saved, with: Set(flows.epochs)))
        // Nobody was there to hear that it went.
        if let local = connection.adoption?.local, local.isAddressGone {
            process(.localAddressRemoved(local.address))
        }
    }

    /// As ``Connection/processes``.
    package var processes: Set<KnownProcess> { connection.processes }

    /// Ends this process's part in the connection, for the next process to go on. Flows that the store has are left as
    /// they are; what cannot be kept is closed in order. Nothing is told, and nothing happens afterwards.
    package func stepDown() {
        hasSteppedDown = true
        setTimer()
        for epoch in flows.epochs { keepaliveSender.forget(epoch) }
        for flow in flows.values where flow.storeNumber == nil { flow.close(aborting: false) }
    }
}

/// What the store has of a flow, put together.
@AgentQueue
private struct StoredFlow: ~Copyable {
    private var socket: OwnedDescriptor?
    /// What belongs to a flow with TLS; `nil` of one without.
    let secured: SecuredStream?
    private let isWhole: Bool

    /// - Parameter place: where a flow with TLS is counted; `nil` of one without.
    init(_ descriptors: [CInt], at place: StreamCounts.Place?, for user: UInt32, by relay: RelayAccess) {
        var parts = FlowParts(descriptors)
        socket = parts.socket.take()
        if let place, let stream = parts.stream.take(), let channel = parts.channel.take() {
            secured = SecuredStream(stream, channel.unshared(), at: place, for: user, by: relay)
        } else {
            secured = nil
        }
        isWhole = (secured != nil) == (place != nil)
    }

    /// Its TCP socket, unless something else of it is missing.
    mutating func takeSocket() -> OwnedDescriptor? { isWhole ? socket.take() : nil }
}
