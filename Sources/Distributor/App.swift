// SPDX-License-Identifier: Apache-2.0

/// Who a registration belongs to. Nobody else can end it, replace it or see its endpoint.
package struct AppIdentity: Hashable, Sendable {
    /// The well-known bus name that the app owns, at which its connector is called (`service` of Register).
    package let name: String
    /// The sandbox that the app was seen in: `flatpak:ORG.APP` or `snap:NAME`; `nil` for none.
    package let sandbox: String?

    /// An app by its bus name and its sandbox.
    package init(name: String, sandbox: String?) {
        self.name = name
        self.sandbox = sandbox
    }

    /// Whose the room is that it takes up: a sandbox may have as many names as it likes.
    package var account: String { sandbox ?? name }
}

/// Which of UnifiedPush's D-Bus interfaces an app's connector speaks.
package enum ConnectorVersion: Int, Hashable, Sendable {
    /// `org.unifiedpush.Connector1`. Messages have no acknowledgement of their own: the method's return is it.
    case v1 = 1
    /// `org.unifiedpush.Connector2`.
    case v2 = 2
}

/// The two kinds of push, PushKit's `PKPushType` without its other ones.
package enum PushKind: String, Hashable, Sendable, CaseIterable {
    /// Delivered as its urgency and the state of the machine allow.
    case standard
    /// A call: delivered at once in any power state, and to be handled within 30 s.
    case voip
}

/// What an app asks for by Register. The sizes are checked where it comes in.
package struct RegistrationRequest: Hashable, Sendable {
    /// Who asks: verified, not what it says.
    package let app: AppIdentity
    /// What the app names the registration by, 1 to 100 bytes. Two apps may use the same.
    package let token: String
    /// The interface that it called.
    package let version: ConnectorVersion
    /// `org.dialtone.type`; `standard` where there is none.
    package let kind: PushKind
    /// What it is for, for a person; "" for nothing.
    package let summary: String
    /// The public key of the app's server (RFC 8292), base64url, for servers that take pushes from nobody else.
    package let vapid: String?

    /// A request with all its fields.
    package init(
        app: AppIdentity, token: String, version: ConnectorVersion, kind: PushKind, summary: String, vapid: String?
    ) {
        self.app = app
        self.token = token
        self.version = version
        self.kind = kind
        self.summary = summary
        self.vapid = vapid
    }
}

/// Why a registration failed, in UnifiedPush's words (`reason` of Register).
package enum RegistrationFailure: String, Hashable, Sendable {
    case internalError = "INTERNAL_ERROR"
    case network = "NETWORK"
    case actionRequired = "ACTION_REQUIRED"
    case vapidRequired = "VAPID_REQUIRED"
    case unauthorized = "UNAUTHORIZED"
}

/// What came of a call of an app's connector.
package enum AppAnswer: Hashable, Sendable {
    /// The app returned.
    case taken
    /// The app answered with a D-Bus error, or ended before it answered; why, for a person.
    case refused(String)
    /// The app did not answer in time.
    case unanswered
    /// The app does not run and the bus could not start it; why, for a person. Nobody saw the message.
    case notStarted(String)
    /// There is no session bus. Nobody saw the message, and this says nothing about the app.
    case noBus
    /// Nobody owns the name, and no service file says how to start it: it is not installed (any more).
    case unknown
}
