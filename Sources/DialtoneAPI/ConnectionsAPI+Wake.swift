// SPDX-License-Identifier: Apache-2.0

extension ConnectionsAPI.Event.Kind {
    /// Something happened to the wake of its client.
    public static let wake = ConnectionsAPI.Event.Kind(rawValue: "wake")
}

extension ConnectionsAPI {
    /// Something that happened to the wake of a connection's client.
    public struct Wake: Codable, Hashable, Sendable {
        /// What happened to it.
        public enum Stage: String, Codable, Hashable, Sendable, CaseIterable {
            /// What each means stands in the interface's definition.
            case began, joined, attempted, attemptFailed, acknowledged, failed, programEnded, overran
        }

        /// Its number, by which it is acknowledged.
        public var number: Int
        /// What happened.
        public var stage: Stage
        /// Why the client is woken, the first reason first.
        public var reasons: [String]
        /// By what it was attempted last: `event`, `signal`, `thaw`, `unit`, `exec`.
        public var means: String?
        /// How many attempts were made.
        public var attempts: Int
        /// What went wrong, or how the program ended.
        public var detail: String?
        /// How long after it began it was acknowledged, or given up.
        public var afterMilliseconds: Int?

        /// What happened to a wake.
        public init(
            number: Int, stage: Stage, reasons: [String], means: String? = nil, attempts: Int, detail: String? = nil,
            afterMilliseconds: Int? = nil
        ) {
            self.number = number
            self.stage = stage
            self.reasons = reasons
            self.means = means
            self.attempts = attempts
            self.detail = detail
            self.afterMilliseconds = afterMilliseconds
        }
    }
}
