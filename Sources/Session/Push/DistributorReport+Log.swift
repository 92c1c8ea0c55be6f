// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePlatform
internal import Logging

/// What the log says of a report. The text of a message is in none of it: it is encrypted.
extension DistributorReport {
    /// How loud it is: what a person has to mend is a warning.
    var level: Logger.Level {
        switch self {
        case .registered, .ended, .identityLost, .clockSet, .storeWorks: .notice
        case .endpoint, .taken, .nothingWaits: .info
        case .server(_, let refusal): refusal == nil ? .notice : .warning
        case .registrationRefused, .trouble, .retried, .givenUp, .refused, .full, .notStarted, .unknownApp, .demoted:
            .warning
        case .storeFailed: .error
        }
    }

    /// What happened, for a person.
    var text: String {
        switch self {
        case .registered: "an app registered"
        case .endpoint: "an app has a new endpoint"
        case .registrationRefused(_, let failure, let why): "an app was not registered: \(failure.rawValue): \(why)"
        case .ended(_, let reason): "a registration ended: \(reason.text)"
        case .server(_, nil): "the push server accepted the login"
        case .server(_, let why?): "the push server refused the login: \(why)"
        case .identityLost(_, let count, let why): "the push server knows none of \(count) registrations: \(why)"
        case .trouble(_, let why): "the push server broke the protocol: \(why)"
        case .taken(_, _, let milliseconds, let attempts):
            "an app took a message, \(milliseconds) ms after it came, in try \(attempts)"
        case .retried(_, _, let failures, let why): "an app did not take a message (try \(failures)): \(why)"
        case .givenUp(_, _, let reason): "a message was given up: \(reason.text)"
        case .refused(_, _, let why): "a message was refused: \(why)"
        case .full: "as many messages wait for an app as may"
        case .notStarted(_, let why): "an app cannot be started: \(why)"
        case .nothingWaits: "nothing waits any more for an app that cannot be started"
        case .unknownApp: "nothing on the session bus has an app's name"
        case .demoted(_, let misses):
            "an app did not answer \(misses) calls in time: its pushes are standard from now on"
        case .clockSet(let milliseconds): "the clock was set by \(milliseconds) ms"
        case .storeFailed(let why): "messages cannot be saved: \(why)"
        case .storeWorks: "messages can be saved again"
        }
    }

    /// What it is about, as fields.
    var metadata: Logger.Metadata {
        switch self {
        case .registered(let subject), .endpoint(let subject), .ended(let subject, _), .full(let subject),
            .notStarted(let subject, _), .unknownApp(let subject), .demoted(let subject, _):
            subject.metadata
        case .taken(let subject, let message, _, _), .retried(let subject, let message, _, _),
            .givenUp(let subject, let message, _):
            subject.metadata.merging(["message": "\(message.printable)"]) { $1 }
        case .registrationRefused(let app, _, _), .nothingWaits(let app): ["app": "\(app.name)"]
        case .server(let server, _), .identityLost(let server, _, _), .trouble(let server, _):
            ["server": "\(server.text)"]
        case .refused(let server, let message, _):
            ["server": "\(server.text)", "message": "\(message.printable)"]
        case .clockSet, .storeFailed, .storeWorks: [:]
        }
    }
}

extension DistributorReport.Subject {
    fileprivate var metadata: Logger.Metadata {
        ["app": "\(app.name)", "registration": "\(registration)", "server": "\(server.text)"]
    }
}

extension DistributorReport.EndReason {
    fileprivate var text: String {
        switch self {
        case .app: "by the app"
        case .user: "by the user"
        case .notInstalled: "the app is not installed any more"
        case .refused(let why): "the server refuses it: \(why)"
        }
    }
}

extension DistributorReport.GiveUpReason {
    fileprivate var text: String {
        switch self {
        case .expired: "its time was over"
        case .poisoned(let failures, let why): "the app failed on it \(failures) times: \(why)"
        case .ended: "its registration ended"
        }
    }
}
