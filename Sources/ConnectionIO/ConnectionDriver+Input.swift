// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform

// What a connection is told, and what is looked at before.

extension ConnectionDriver {
    enum Input {
        case line(ConnectionInput)
        case client(ClientInput)
        case restored(Connection.Saved, with: Set<UInt64>)
        case deadlinePassed

        /// Whether the connection may end the flow that stands for it, though that works.
        func mayEnd(_ standing: UInt64?) -> Bool {
            switch self {
            case .deadlinePassed, .client(.processEnded): true
            case .client, .restored: false
            case .line(let input):
                switch input {
                case .pathChanged, .flowPathChanged, .localAddressRemoved, .dialSucceeded, .resumed, .redialRequested,
                    .policyChanged:
                    true
                case .sessionOpened(let epoch): epoch != standing
                case .opened, .adopted, .reopened, .resolved, .resolutionFailed, .detourFound, .handshakeBegan,
                    .dialFailed, .remoteClosed, .flowFailed, .probeSent, .answered, .answerHidden, .undelivered,
                    .acknowledged, .arrived, .certificateEnds, .taken, .parked, .returned, .abandoned, .openingLeft,
                    .answersLeft,
                    .openingAnswered, .openingFailed, .serverAsked, .timerFired, .closeRequested:
                    false
                }
            }
        }
    }

    /// Sorts what waits on the flow for its turn. Of one that ends, what the client has not read is kept, and the
    /// answer to a keepalive would be taken for the client's.
    func takeWhatCame() {
        guard let epoch = connection.standingEpoch, connection.reader == nil else { return }
        keepaliveSender.takeAnswer(on: epoch)
    }
}

extension ConnectionDriver: KeepaliveSenderOwner {
    func keepaliveSender(heard word: ConnectionInput) { process(word) }

    func keepaliveSenderAnswered(on epoch: UInt64) { observer?.connectionAnswered(self) }
}

/// What the connection asks while it decides.
@AgentQueue
struct Facts: @AgentQueue ConnectionFacts {
    let flows: ByEpoch<Flow>
    let observer: (any ConnectionObserver)?

    func unreadBytes(on epoch: UInt64) -> Int { flows[epoch]?.unreadBytes ?? 0 }

    func mayHaveUnread(_ epoch: UInt64) -> Bool { flows[epoch]?.mayHaveUnread ?? false }

    func touch(of epoch: UInt64) -> Touch { flows[epoch]?.touch ?? .touched }

    func presence(of process: KnownProcess) -> ClientPresence { observer?.presence(of: process) ?? [] }

    func isWatched(by process: KnownProcess?) -> Bool { observer?.isWatched(by: process) ?? false }
}
