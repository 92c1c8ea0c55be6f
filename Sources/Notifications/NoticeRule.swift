// SPDX-License-Identifier: Apache-2.0

/// What is shown when something happens, and how.
package struct NoticeRule: Hashable, Sendable {
    /// What can be shown.
    package enum Event: String, CaseIterable, Sendable {
        /// A connection has had no socket for a while.
        case connectionDown = "connection-down"
        /// A server does not accept a login: a connection's opening, or push's.
        case loginRefused = "login-refused"
        /// The wake of a connection's client was given up.
        case wakeFailed = "wake-failed"
        /// A certificate ends within a week.
        case certificateEnds = "certificate-ends"
        /// Bytes have waited for a client for a while, and no program takes them.
        case bytesUnread = "bytes-unread"
        /// A push came for an app that cannot be started.
        case appNotStarted = "app-not-started"

        /// Whether it lasts for a while before it is shown.
        package var waits: Bool { self == .connectionDown || self == .bytesUnread }

        /// Whether it is about a connection; else about an app, or about push's server.
        package var isOfConnection: Bool { self != .appNotStarted }

        /// Whether a new socket may help, so that the notification has a button for one.
        var isRedialled: Bool { self == .connectionDown || self == .loginRefused }
    }

    /// As `org.freedesktop.Notifications` has it.
    package enum Urgency: String, CaseIterable, Sendable {
        case low, normal, critical
    }

    /// What a button does in place of the usual.
    package struct Command: Hashable, Sendable {
        /// What stands on the button.
        package var label: String
        /// The program's absolute path, and its arguments.
        package var arguments: [String]

        /// A command.
        package init(label: String, arguments: [String]) { (self.label, self.arguments) = (label, arguments) }
    }

    /// When it applies.
    package var event: Event
    /// The names of the connections or apps that it is for; `nil` for all.
    package var names: Set<String>?
    /// Whether anything is shown.
    package var isShown = true
    /// How long it must have lasted; 0 for an event that does not wait.
    package var after: Duration
    /// The first line.
    package var title: NoticeText
    /// What stands below it.
    package var body: NoticeText
    /// How urgent it is.
    package var urgency = Urgency.normal
    /// What its button runs; without one the button dials anew, where that may help.
    package var command: Command?

    /// The default rule of an event.
    package init(_ event: Event) {
        self.event = event
        switch event {
        case .connectionDown:
            after = .seconds(600)
            (title, body) = ([.name, " is down"], ["Since ", .since, ": ", .reason])
        case .loginRefused:
            after = .zero
            (title, body) = ([.name, ": login refused"], [.reason])
        case .wakeFailed:
            after = .zero
            (title, body) = (["The client of ", .name, " does not run"], ["It was to be woken: ", .reason])
        case .certificateEnds:
            after = .zero
            (title, body) = (["A certificate of ", .name, " ends"], [.reason])
        case .bytesUnread:
            after = .seconds(300)
            (title, body) = (["Nobody reads what came for ", .name], ["It waits since ", .since, "."])
        case .appNotStarted:
            after = .zero
            (title, body) = ([.name, " cannot be started"], ["A push waits for it: ", .reason])
        }
    }

    /// The rules that hold where the user has none.
    package static var defaults: [NoticeRule] { Event.allCases.map { NoticeRule($0) } }

    /// Whether it is about this one.
    func applies(to event: Event, of name: String) -> Bool {
        self.event == event && names?.contains(name) ?? true
    }
}

/// A text with places for what is known of the event.
package struct NoticeText: Hashable, Sendable, ExpressibleByArrayLiteral {
    /// A part of a text.
    package enum Part: Hashable, Sendable, ExpressibleByStringLiteral {
        /// As it is.
        case text(String)
        /// The connection's or the app's name.
        case name
        /// Why, in the words of whoever knows.
        case reason
        /// Since when, as a clock shows it.
        case since

        package init(stringLiteral text: String) { self = .text(text) }
    }

    /// Why a text is none.
    package struct Problem: Error, Hashable {
        /// For a person.
        package let text: String
    }

    private let parts: [Part]

    package init(arrayLiteral parts: Part...) { self.parts = parts }

    /// Reads a text such as `{name} is down`. What stands in braces is one of `name`, `reason` and `since`; two braces
    /// are one.
    package init(_ text: String) throws(Problem) {
        var parts: [Part] = []
        var plain = ""
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            guard scalar == "{" || scalar == "}" else {
                plain.unicodeScalars.append(scalar)
                continue
            }
            if rest.first == scalar {
                rest.removeFirst()
                plain.unicodeScalars.append(scalar)
                continue
            }
            guard scalar == "{", let end = rest.firstIndex(of: "}") else {
                throw Problem(text: "a brace without its other; write two for one")
            }
            if !plain.isEmpty { parts.append(.text(plain)) }
            plain = ""
            switch String(rest[..<end]) {
            case "name": parts.append(.name)
            case "reason": parts.append(.reason)
            case "since": parts.append(.since)
            case let other: throw Problem(text: "\"{\(other)}\" is none of {name}, {reason} and {since}")
            }
            rest = rest[rest.index(after: end)...]
        }
        if !plain.isEmpty { parts.append(.text(plain)) }
        self.parts = parts
    }

    /// The text with what is known, cut to so many Unicode scalars.
    func filled(name: String, reason: String?, since: String, limit: Int) -> String {
        let text = parts.map { part in
            switch part {
            case .text(let text): text
            case .name: name
            case .reason: reason ?? "no reason is known"
            case .since: since
            }
        }.joined()
        let scalars = text.unicodeScalars
        return scalars.count <= limit ? text : String(String.UnicodeScalarView(scalars.prefix(limit - 1))) + "…"
    }
}
