// SPDX-License-Identifier: Apache-2.0

/// Something for the log: a fact for programs, and ``text`` for a person.
package enum DistributorReport: Hashable, Sendable {
    /// An app has a new registration.
    case registered(Subject)
    /// It has an endpoint, a first one or another one.
    case endpoint(Subject)
    /// An app was refused a registration.
    case registrationRefused(AppIdentity, RegistrationFailure, String)
    /// A registration is over.
    case ended(Subject, EndReason)
    /// A server stands or does not: `nil` for a session that stands.
    case server(ServerName, refusal: String?)
    /// A server knows nothing of so many registrations: they are registered anew.
    case identityLost(ServerName, registrations: Int, why: String)
    /// A server broke the protocol.
    case trouble(ServerName, String)
    /// An app took a message that came so many milliseconds before, at that attempt.
    case taken(Subject, message: String, after: Int64, attempts: Int)
    /// An app did not take a message: it failed so often by now, and is tried again.
    case retried(Subject, message: String, failures: Int, why: String)
    /// A message was given up.
    case givenUp(Subject, message: String, GiveUpReason)
    /// A message was refused at once.
    case refused(ServerName, message: String, why: String)
    /// There is no room for an app's messages; told once until there is room again.
    case full(Subject)
    /// An app cannot be started; told once until it can.
    case notStarted(Subject, why: String)
    /// For an app that cannot be started nothing waits any more: its messages were given up.
    case nothingWaits(AppIdentity)
    /// Nobody on the bus knows the app; told once until somebody does.
    case unknownApp(Subject)
    /// An app missed too many VoIP messages and is treated as `standard`.
    case demoted(Subject, misses: Int)
    /// The clock was set by so many milliseconds; what waits lives as long as before.
    case clockSet(by: Int64)
    /// Nothing can be saved: nothing new is taken until it can.
    case storeFailed(String)
    /// It can be saved again.
    case storeWorks

    /// Which registration a report is of.
    package struct Subject: Hashable, Sendable {
        /// Its number.
        package let registration: Int64
        /// Its app.
        package let app: AppIdentity
        /// Its server.
        package let server: ServerName

        /// The registration, as a report names it.
        package init(_ registration: Registration) {
            self.registration = registration.number
            app = registration.request.app
            server = registration.server
        }
    }

    /// Why a registration ended.
    package enum EndReason: Hashable, Sendable {
        /// The app unregistered.
        case app
        /// The user removed it.
        case user
        /// The app has not been installed for the grace.
        case notInstalled
        /// The server refuses it for good; why.
        case refused(String)
    }

    /// Why a message was given up.
    package enum GiveUpReason: Hashable, Sendable {
        /// Its time was over.
        case expired
        /// The app failed to take it so many times: it may be what the app fails of. The last answer.
        case poisoned(failures: Int, String)
        /// Its registration ended.
        case ended
    }
}
