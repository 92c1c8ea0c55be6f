// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor

/// An iq of ours that has no answer yet.
struct XMPPQuestion: Hashable, Sendable {
    /// What it asks.
    enum Subject: Hashable, Sendable {
        /// A registration's endpoint.
        case endpoint(RegistrationID)
        /// What somebody is (XEP-0030, section 3).
        case features
        /// Who else is there (XEP-0030, section 4).
        case services
    }

    /// How long an answer may take.
    static let time = Duration.seconds(60)

    let subject: Subject
    /// Who is asked: nobody else's answer counts.
    let to: String
    /// When it is given up; `nil` while there is no socket.
    var deadline: Duration?

    /// What it registers.
    var registration: RegistrationID? { if case .endpoint(let registration) = subject { registration } else { nil } }
}

/// The search for a push service: the account's server, then what it lists.
struct XMPPDiscovery: Hashable, Sendable {
    /// The most services that are asked. Public servers list about ten.
    static let mostServices = 32

    /// Who is still to be asked what it is.
    var candidates: [String]
}
