// SPDX-License-Identifier: Apache-2.0

/// What the driver does after an input, in this order: it saves ``changes`` in one transaction, then it does what
/// ``effects`` says. Where the transaction fails it does none of these effects and calls
/// ``Distributor/saveFailed(_:at:)`` before anything else, whose effects it does.
package struct DistributorTurn: Hashable, Sendable {
    /// What is saved in one transaction.
    package var changes: [StoreChange] = []
    /// What is done when it was saved.
    package var effects: [DistributorEffect] = []
}

/// What the driver does.
package enum DistributorEffect: Hashable, Sendable {
    /// Give this to a server's value. Where its socket is parked it is taken back for that.
    case server(ServerName, PushServerInput)
    /// Call an app's connector, and tell by ``DistributorInput/answered(attempt:_:)`` what came of it.
    case tell(AppTelling)
    /// Answer a call of Register.
    case answer(call: UInt64, RegistrationAnswer)
    /// Keep the machine from going to sleep, or no longer. At the start it is not kept from it.
    case inhibitSleep(Bool)
    /// Answer a command.
    case done(call: UInt64, CommandResult)
    /// Write this into the log, and count it.
    case report(DistributorReport)
}

/// A call of an app's connector, which starts an app that does not run.
package struct AppTelling: Hashable, Sendable {
    /// The number by which the driver tells what came of it.
    package let attempt: UInt64
    /// Whom to call.
    package let app: AppIdentity
    /// By which interface.
    package let version: ConnectorVersion
    /// The registration, by the app's name for it.
    package let token: String
    /// Whether pushes for calls are delivered to it like any others since it answered too late.
    package let isDemoted: Bool
    /// What it is told.
    package let content: Content
    /// How long the app has for its answer, its start included. The driver may leave the time to the distributor,
    /// which does not wait longer than a little beyond it.
    package let timeout: Duration

    /// What an app is told.
    package enum Content: Hashable, Sendable {
        /// `NewEndpoint`
        case newEndpoint(String)
        /// `Message`, with an id that is the same when the message is delivered again.
        case message([UInt8], id: String)
        /// `Unregistered`; whether the app asked for it by Unregister.
        case unregistered(isAsked: Bool)
    }

    /// A call with all its fields.
    package init(
        attempt: UInt64, app: AppIdentity, version: ConnectorVersion, token: String, isDemoted: Bool,
        content: Content, timeout: Duration
    ) {
        self.attempt = attempt
        self.app = app
        self.version = version
        self.token = token
        self.isDemoted = isDemoted
        self.content = content
        self.timeout = timeout
    }
}

/// The answer to a call of Register.
package enum RegistrationAnswer: Hashable, Sendable {
    /// The app is registered: NewEndpoint follows.
    case succeeded
    /// It is not; why, in UnifiedPush's words and for a person. After `NETWORK` and `ACTION_REQUIRED` it is tried
    /// further, and NewEndpoint may follow.
    case failed(RegistrationFailure, String)
}

/// What came of a command.
package enum CommandResult: Hashable, Sendable {
    /// It is done, or is under way and will be.
    case done
    /// There is no registration of that number.
    case noSuchRegistration
    /// The test's body is empty, or longer than 4096 bytes.
    case badBody
    /// The app answered the test.
    case tested(AppAnswer)
}
