// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// The addresses that a name stands for.
package struct Resolution: Hashable, Sendable {
    /// Where an answer came from.
    package enum Source: Hashable, Sendable {
        /// The hosts file.
        case hostsFile
        /// A name server.
        case nameServer
        /// The name's own meaning: `localhost` (RFC 6761, section 6.3).
        case definition
    }

    /// The addresses, never empty, in the order of the answer. Whoever dials orders them by RFC 6724: that takes the
    /// source address of each, which the kernel's routes decide and the resolver does not know.
    package var addresses: [IPAddress]
    /// Until when the answer may be used again, on `BootClock`: the smallest time to live among its records, aliases
    /// included. `nil` for what did not come from a name server: it holds until its file is changed.
    package var expires: Duration?
    /// Where it came from.
    package var source: Source

    /// An answer.
    package init(addresses: [IPAddress], expires: Duration?, source: Source) {
        self.addresses = addresses
        self.expires = expires
        self.source = source
    }
}

/// Why a name has nothing of what was asked for.
package struct ResolutionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What happened, in order of how little it says of the name.
    package enum Kind: Hashable, Sendable {
        /// It is no name: a label is empty or too long (RFC 1035, section 2.3.4). No server was asked.
        case malformed
        /// The name servers know that there is no such name (NXDOMAIN).
        case noSuchName
        /// The name exists and has no record of the type that was asked for (NODATA): no address of this family, no
        /// host of a service, no rule.
        case noRecord
        /// A name server answered, and could not or would not say: SERVFAIL, REFUSED and the like, or nonsense.
        case serverFailure
        /// No name server answered: silence, a refusal of its port, no route to it, none configured.
        case noAnswer
    }

    /// What happened.
    package var kind: Kind
    /// What came back, in words, for the end of a sentence.
    package var text: String
    /// Until when it holds, on `BootClock`, by the word of the zone's authority (RFC 2308, section 5). `nil` where
    /// there is no such word: where nobody knows, and where an answer came without it.
    package var expires: Duration?

    /// An error.
    package init(_ kind: Kind, _ text: String, expires: Duration? = nil) {
        self.kind = kind
        self.text = text
        self.expires = expires
    }

    /// Whether the answer is known, and not just to be had by nobody for the moment: asking again soon brings the same.
    /// Tell the user. Where it is false, ask again later.
    package var isFinal: Bool {
        switch kind {
        case .malformed, .noSuchName, .noRecord: true
        case .serverFailure, .noAnswer: false
        }
    }

    /// What came back, in words.
    package var description: String { text }
}

extension ResolutionError {
    /// Of the errors for several types the one that says most about what to do: one that is not final before one
    /// that is, a name without this record before no such name. It holds as long as all of them do.
    package static func mostHopeful(of errors: [ResolutionError]) -> ResolutionError? {
        let rank: [Kind] = [.noAnswer, .serverFailure, .noRecord, .noSuchName, .malformed]
        guard var error = rank.lazy.compactMap({ kind in errors.first { $0.kind == kind } }).first else { return nil }
        if error.isFinal { error.expires = errors.compactMap(\.expires).min() }
        return error
    }
}
