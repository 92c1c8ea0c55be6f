// SPDX-License-Identifier: Apache-2.0

public import Varlink

extension ConnectionsAPI {
    /// One step of what the daemon says on a new flow to log in for a client that sleeps. No description of it shows
    /// what it holds.
    public struct OpeningStep: VarlinkParameters, Hashable {
        /// What is sent; nothing where the server speaks first.
        public var send: String?
        /// How the answer is recognized; `nil` where there is none.
        public var expect: OpeningAnswer?
        /// How messages for the client begin that may come before the answer of the last step.
        public var overtakenBy: [String]?

        /// The fields.
        public enum CodingKeys: String, CodingKey, CaseIterable {
            /// Named as the properties.
            case send, expect, overtakenBy
        }

        /// A step.
        public init(send: String? = nil, expect: OpeningAnswer? = nil, overtakenBy: [String]? = nil) {
            self.send = send
            self.expect = expect
            self.overtakenBy = overtakenBy
        }

        /// The fields of the answer are checked as well.
        public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? {
            switch field {
            case .expect: OpeningAnswer.self
            case .send, .overtakenBy: nil
            }
        }
    }

    /// How an answer in an opening is recognized.
    public struct OpeningAnswer: VarlinkParameters, Hashable {
        /// How it begins; all of it where nothing else says how long it is.
        public var bytes: String?
        /// How many bytes it has.
        public var length: Int?
        /// What it ends with.
        public var until: String?
        /// The protocol of which it is one message: mqtt or websocket.
        public var message: String?
        /// What it holds.
        public var contains: String?

        /// The fields.
        public enum CodingKeys: String, CodingKey, CaseIterable {
            /// Named as the properties.
            case bytes, length, until, message, contains
        }

        /// An answer.
        public init(
            bytes: String? = nil, length: Int? = nil, until: String? = nil, message: String? = nil,
            contains: String? = nil
        ) {
            self.bytes = bytes
            self.length = length
            self.until = until
            self.message = message
            self.contains = contains
        }
    }

    /// The opening exchange cannot be played.
    public struct InvalidOpening: VarlinkErrorReply, Hashable {
        /// The error's name.
        public static let errorName = "org.dialtone.Connections.InvalidOpening"
        /// What is wrong with it.
        public var reason: String
        /// The error.
        public init(reason: String) { self.reason = reason }
    }
}

extension ConnectionsAPI.OpeningStep: CustomStringConvertible, CustomDebugStringConvertible {
    /// That it is one.
    public var description: String { "a step of an opening" }
    /// The same.
    public var debugDescription: String { description }
}

extension ConnectionsAPI.OpeningAnswer: CustomStringConvertible, CustomDebugStringConvertible {
    /// That it is one.
    public var description: String { "an answer in an opening" }
    /// The same.
    public var debugDescription: String { description }
}
