// SPDX-License-Identifier: Apache-2.0

public import DialtonePlatform

/// Why a call has no answer, or a refusal for one.
public enum VarlinkCallError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The service answered with an error.
    case refused(VarlinkFailure)
    /// The service hung up before it answered.
    case hungUp
    /// The kernel refused to send or to receive.
    case failed(SystemError)
    /// The service sent something that is not Varlink, or not the method's reply.
    case violated(VarlinkViolation)
    /// This side closed the connection.
    case closed

    /// What came back, for the end of a sentence.
    public var description: String {
        switch self {
        case .refused(let failure): "\(failure)"
        case .hungUp: "the service hung up"
        case .failed(let error): "\(error)"
        case .violated(let violation): "the service broke the protocol: \(violation)"
        case .closed: "the connection was closed on this side"
        }
    }
}

extension VarlinkCallError {
    init(_ ending: Channel.Ending) {
        switch ending {
        case .hungUp: self = .hungUp
        case .failed(let error): self = .failed(error)
        case .violated(let violation): self = .violated(violation)
        }
    }
}
