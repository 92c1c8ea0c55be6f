// SPDX-License-Identifier: Apache-2.0

internal import Connection

// What a connection is told, and what is looked at before.

extension ConnectionDriver {
    enum Input {
        case line(ConnectionInput)
        case client(ClientInput)
        case restored(Clientele, ConnectionInput, Opening?)
        case deadlinePassed

        /// Whether the connection may end a flow for it that works.
        var mayEndFlow: Bool {
            switch self {
            case .deadlinePassed: true
            case .client, .restored: false
            case .line(let input):
                switch input {
                case .pathChanged, .flowPathChanged, .localAddressRemoved, .dialSucceeded, .sessionOpened, .resumed,
                    .redialRequested, .policyChanged:
                    true
                case .opened, .adopted, .reopened, .resolved, .resolutionFailed, .detourFound, .handshakeBegan,
                    .dialFailed, .remoteClosed, .flowFailed, .probeSent, .answered, .answerHidden, .acknowledged,
                    .arrived, .taken, .parked, .returned, .abandoned, .openingLeft, .openingAnswered, .openingFailed,
                    .serverAsked, .timerFired, .closeRequested:
                    false
                }
            }
        }
    }

    /// Decrypts what waits on the parked flow for its turn. Of a flow that ends, the agent keeps what the client has
    /// not read, and does not know of what TLS has not seen.
    func takeWhatCame() {
        guard let epoch = connection.standingEpoch, let flow = flows[epoch], flow.isParked, flow.hasUndecrypted else {
            return
        }
        flow.takeWhatCame()
    }
}
