// SPDX-License-Identifier: Apache-2.0

public import DialtonePlatform

/// What keeps pushes from coming: what was tried, what came back, and what to do about it.
public enum PushError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The app's name is no bus name, or its server's key is no key of P-256: nothing was tried.
    case invalidSettings(String)
    /// The process knows of no session bus.
    case noSessionBus
    /// The bus does not give this process the app's name: it says why.
    case nameRefused(name: String, reason: String)
    /// Another process has the app's name, and gets the pushes. This one gets them when that ends.
    case nameTaken(name: String)
    /// There is no UnifiedPush distributor, running or to be started. The registry goes on when one comes.
    case noDistributor
    /// The distributor did not answer, or not with what the specification says. The registry tries again.
    case distributorFailed(name: String, reason: String)
    /// The distributor refused the registration.
    case registrationFailed(PushType, RegistrationFailure)
    /// The app completed pushes for calls too late, three times in a row: Dialtone's distributor delivers them like
    /// any others from now on, so they may wait for power or for a network that costs nothing.
    case demoted
    /// A push could not be decrypted. It was acknowledged: no second try would go better.
    case unreadable(PushType, reason: String)
    /// The keys and tokens could not be kept on disk, and without them no push could be read after a restart: nothing
    /// was registered.
    case notKept(SystemError)
    /// What was kept is damaged. New keys are made, and new credentials follow.
    case damaged(path: String)

    /// Why a distributor refused (UnifiedPush's D-Bus specification, `reason` of Register).
    public enum RegistrationFailure: String, Hashable, Sendable {
        /// The distributor has trouble of its own. The registry tries again.
        case internalError = "INTERNAL_ERROR"
        /// The distributor has no network. The registry tries again.
        case network = "NETWORK"
        /// A person has to do something in the distributor: an account, a permission.
        case actionRequired = "ACTION_REQUIRED"
        /// The distributor takes only apps that name their server's key:
        /// ``PushRegistry/init(appID:queue:serverKey:description:)``.
        case vapidRequired = "VAPID_REQUIRED"
        /// The app may not register.
        case unauthorized = "UNAUTHORIZED"

        /// Whether the registry tries again by itself.
        var isPassing: Bool { self == .internalError || self == .network }
    }

    /// What was tried, what came back and what to do, as a sentence for a person.
    public var description: String {
        switch self {
        case .invalidSettings(let problem):
            "The app cannot register for pushes: \(problem)."
        case .noSessionBus:
            """
            There is no session bus: DBUS_SESSION_BUS_ADDRESS and XDG_RUNTIME_DIR are not set. Start the app in a \
            user's session, or with dbus-run-session.
            """
        case .nameRefused(let name, let reason):
            "The session bus does not give out the name \(name): \(reason). In a sandbox, the app needs to own it."
        case .nameTaken(let name):
            "Another process has the name \(name) and gets the pushes. End it, or let it get them."
        case .noDistributor:
            """
            No UnifiedPush distributor is on the session bus, and none can be started. Install one; in a sandbox, the \
            app needs --talk-name=org.unifiedpush.Distributor.*.
            """
        case .distributorFailed(let name, let reason):
            "The distributor \(name) did not register the app: \(reason)."
        case .registrationFailed(let type, let failure):
            "The distributor did not register the app for \(type.rawValue) pushes: \(failure.explanation)."
        case .demoted:
            """
            The distributor delivers pushes for calls like any others now, since the app completed several of them too \
            late. Complete each within 30 s. To get calls at once again, give the registration up and register again.
            """
        case .unreadable(let type, let reason):
            "A \(type.rawValue) push could not be read: \(reason)."
        case .notKept(let error):
            "The keys for pushes cannot be kept: \(error). Make room there, or set XDG_STATE_HOME to another place."
        case .damaged(let path):
            "The keys for pushes in \(path) are damaged. New ones are made; the old credentials are no longer valid."
        }
    }
}

extension PushError.RegistrationFailure {
    fileprivate var explanation: String {
        switch self {
        case .internalError: "it has trouble of its own"
        case .network: "it has no network"
        case .actionRequired: "it waits for a person, who finds more in its settings"
        case .vapidRequired: "it wants the key of the app's server (VAPID)"
        case .unauthorized: "the app may not"
        }
    }
}
