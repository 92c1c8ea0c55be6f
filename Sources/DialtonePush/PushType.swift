// SPDX-License-Identifier: Apache-2.0

/// What pushes of a registration are for; PushKit's `PKPushType`. An app may register for both at the same time, and
/// has a token for each.
public enum PushType: String, Hashable, Sendable, CaseIterable {
    /// A call is coming. Dialtone's distributor delivers it at once in any power state, and expects that the app
    /// completes each within 30 s. To other distributors it is a push like any other.
    case voIP = "voip"
    /// Anything else.
    case standard
}

/// What an app's server needs to send pushes to this app; PushKit's `PKPushCredentials`.
public struct PushCredentials: Hashable, Sendable {
    /// What the pushes are for.
    public let type: PushType
    /// The URL that the server posts to. Whoever knows it can post, so it goes to the app's server and nowhere else.
    public let endpoint: String
    /// The key that the server encrypts with: a point of P-256, uncompressed (RFC 8291: `p256dh`).
    public let publicKey: [UInt8]
    /// The secret that the server encrypts with, 16 bytes (RFC 8291: `auth`).
    public let authenticationSecret: [UInt8]
}

/// A push that arrived, decrypted; PushKit's `PKPushPayload`.
public struct PushPayload: Hashable, Sendable {
    /// What it is for: the registration's type.
    public let type: PushType
    /// What the app's server sent, at most 3993 bytes (RFC 8291 section 4). Any format is the app's own;
    /// PushKit's `dictionaryPayload` would be JSON here.
    public let bytes: [UInt8]
    /// The distributor's name for the message. A push that comes twice, since the answer to the first was lost, has the
    /// same. `nil` where the distributor gave none.
    public let identifier: String?

    /// ``bytes`` as text; `nil` where they are no UTF-8.
    public var text: String? { String(validating: bytes, as: UTF8.self) }
}
