// SPDX-License-Identifier: Apache-2.0

/// What is to be done.
package enum NoticeEffect: Hashable, Sendable {
    /// Show a notification, and tell what came of it by the attempt's number.
    case show(Notice, attempt: UInt64)
    /// Take one from the screen, by the daemon's number.
    case withdraw(UInt32)
    /// Dial a connection anew.
    case redial(String)
    /// Run a program.
    case run([String], about: NoticeSubject)
    /// Something is not looked at, since too much is wrong already; told once.
    case full
}

/// What a notification is about.
package struct NoticeSubject: Hashable, Sendable {
    /// What happened.
    package let event: NoticeRule.Event
    /// The connection, the app, or the server of push.
    package let name: String

    /// A subject.
    package init(_ event: NoticeRule.Event, _ name: String) { (self.event, self.name) = (event, name) }
}

/// A notification. All of it is plain text.
package struct Notice: Hashable, Sendable {
    /// What is shown of it.
    package struct Content: Hashable, Sendable {
        package var title: String
        package var body: String
        package var urgency: NoticeRule.Urgency
        /// What stands on its button; `nil` for none.
        package var button: String?

        /// What is shown.
        package init(title: String, body: String, urgency: NoticeRule.Urgency, button: String?) {
            (self.title, self.body, self.urgency, self.button) = (title, body, urgency, button)
        }
    }

    /// What it is about; `nil` for nothing.
    package let subject: NoticeSubject?
    /// What it says.
    package let content: Content
    /// The daemon's number of the one that it takes the place of; `nil` for a new one.
    package let replaces: UInt32?

    /// A notification.
    package init(subject: NoticeSubject?, content: Content, replaces: UInt32?) {
        (self.subject, self.content, self.replaces) = (subject, content, replaces)
    }

    /// One to see that notifications are shown.
    package static let test = Notice(
        subject: nil,
        content: Content(
            title: "Notifications work", body: "Shown by \"dialtone notify --test\".", urgency: .normal, button: nil),
        replaces: nil)
}

/// How it stands with something that is wrong, for the user who asks.
package struct NoticeOverview: Hashable, Sendable {
    package enum Stage: Hashable, Sendable {
        /// It has not lasted long enough yet.
        case waiting
        /// It is due, and there is nobody to show it, or no room.
        case kept
        /// It is shown.
        case shown
        /// It was shown, and closed.
        case seen
    }

    package let subject: NoticeSubject
    package let content: Notice.Content
    package let stage: Stage
}
