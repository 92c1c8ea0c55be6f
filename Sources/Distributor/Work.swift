// SPDX-License-Identifier: Apache-2.0

internal import DequeModule

/// What is under way for one registration. It is there only while there is something: thousands of registrations that
/// rest cost nothing when something happens to one.
struct Work: Sendable {
    /// The messages that wait, by their numbers.
    var queue: Deque<Int64> = []
    /// The call that delivers the first of them.
    var delivering: UInt64?
    /// When the first may be tried.
    var retry = Duration.zero
    /// How often in a row the app could not be started, or was not known.
    var startFailures = 0

    /// Whether the app is to be told its endpoint.
    var isTelling = false
    /// The call that does.
    var telling: UInt64?
    /// When it may be tried.
    var tellRetry = Duration.zero
    var tellFailures = 0
    /// Whether it is for its start that it waits: an app that refuses its endpoint is not called all the time.
    var tellWaitsForStart = false

    /// When the server may be asked to register it; `nil` where it need not be.
    var register: Duration?
    var registerFailures = 0
    /// The calls of Register that wait for that.
    var calls: [Call] = []

    /// A call of Register, and until when it waits.
    struct Call: Sendable {
        var number: UInt64
        var until: Duration
    }

    /// The app runs: what waited for its start may be tried at once.
    mutating func startSucceeded() {
        if startFailures > 0 { retry = .zero }
        startFailures = 0
        if tellWaitsForStart { (tellRetry, tellWaitsForStart) = (.zero, false) }
    }

    /// Whether nothing is under way.
    var isEmpty: Bool {
        queue.isEmpty && delivering == nil && !isTelling && telling == nil && register == nil && calls.isEmpty
    }
}

/// What is known of a server's session.
struct Session: Sendable {
    /// Whether it stood, the last time that was told.
    var isLoggedIn = false
    /// Why the server refuses the account.
    var refusal: String?
    /// Whether it was told again of what was settled before this process.
    var hasSettledAgain = false
    /// What it was asked to register or to end, and until when the answer is awaited.
    var asked: [RegistrationID: Duration] = [:]
}

/// A call of an app that is under way.
struct Attempt: Sendable {
    var app: AppIdentity
    var purpose: Purpose
    /// When the answer is not awaited any longer.
    var until: Duration

    enum Purpose: Sendable {
        /// It delivers a message.
        case message(Int64, registration: Int64, isVoIP: Bool)
        /// It tells an endpoint.
        case endpoint(String, registration: Int64)
        /// It tells that a registration is over.
        case ended
        /// It is the user's test.
        case test(call: UInt64)
    }

    /// Whether it counts against the limit of calls under way. An app is told at once that a registration is over,
    /// however many it ends. If that counted, an app that never answers would block the pushes of all others.
    var isCounted: Bool {
        switch purpose {
        case .message(_, _, let isVoIP): !isVoIP
        case .endpoint: true
        case .ended, .test: false
        }
    }
}

/// That nothing can be saved.
struct StoreFailure: Sendable {
    var failures: Int
    var why: String
    /// When it is tried again.
    var retry: Duration
}
