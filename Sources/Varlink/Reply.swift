// SPDX-License-Identifier: Apache-2.0

/// A received reply.
public enum VarlinkReply<Parameters: Decodable & Sendable>: Sendable {
    /// The method's answer; `continues` says that another reply follows.
    case success(Parameters, continues: Bool)
    /// An error, which ends the call.
    case failure(VarlinkFailure)

    /// Reads a message without its NUL.
    ///
    /// - Throws: what makes it no reply of the method. Members that the protocol or the method does not know are passed
    ///   over, so that a newer service may add some.
    public init(_ message: [UInt8]) throws(VarlinkViolation) {
        let envelope = try JSON.decodeEnvelope(ReplyEnvelope<Parameters>.self, from: message) { .notAReply($0) }
        switch envelope {
        case .success(let parameters, let continues): self = .success(parameters, continues: continues)
        case .failure(let name): self = .failure(VarlinkFailure(name: name, received: message))
        }
    }
}

private enum ReplyEnvelope<Parameters: Decodable>: Decodable {
    case success(Parameters, continues: Bool)
    case failure(String)

    enum CodingKeys: CodingKey {
        case parameters, continues, error
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let name = try container.decodeIfPresent(String.self, forKey: .error) {
            self = .failure(name)
        } else {
            let parameters = try container.decodeOrEmpty(Parameters.self, forKey: .parameters)
            let continues = try container.decodeIfPresent(Bool.self, forKey: .continues) ?? false
            self = .success(parameters, continues: continues)
        }
    }
}
