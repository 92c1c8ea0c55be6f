// SPDX-License-Identifier: Apache-2.0

public import NetworkPath

/// The addresses that a name stands for.
public struct Resolution: Hashable, Sendable {
    /// The addresses, never empty, in the order of the answer. Whoever dials orders them by RFC 6724: that takes the
    /// source address of each, which the kernel's routes decide and the resolver does not know.
    public var addresses: [IPAddress]
    /// Until when the answer may be used again, on `BootClock`: the smallest time to live among its records, aliases
    /// included. For a name from the hosts file, which has no time to live, the moment of the answer.
    public var expires: Duration
    /// Whether it comes from the hosts file, and no name server was asked.
    public var isFromHostsFile: Bool

    /// An answer.
    public init(addresses: [IPAddress], expires: Duration, isFromHostsFile: Bool = false) {
        self.addresses = addresses
        self.expires = expires
        self.isFromHostsFile = isFromHostsFile
    }
}

/// Why a name has no addresses, grouped by what the caller does next.
public enum ResolutionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name servers know: there is no such name, or no address of that family under it, or it is no name at all.
    /// Asking again soon brings the same answer; tell the user. The text is c-ares' own.
    case noSuchName(String)
    /// Nobody answered, or the answer was of no use: a timeout, a refusal, no server, no network. Ask again later. The
    /// text is c-ares' own.
    case transient(String)

    /// What came back, in words.
    public var description: String {
        switch self {
        case .noSuchName(let text), .transient(let text): text
        }
    }
}

extension Result<Resolution, ResolutionError> {
    /// One answer from the answers for several families: all the addresses, or the error that leaves more hope.
    static func merging(_ answers: [Self]) -> Self {
        let found = answers.compactMap { try? $0.get() }
        if let expires = found.map(\.expires).min() {
            return .success(
                Resolution(
                    addresses: found.flatMap(\.addresses), expires: expires,
                    isFromHostsFile: found.contains(where: \.isFromHostsFile)))
        }
        let errors = answers.compactMap { answer -> ResolutionError? in
            if case .failure(let error) = answer { error } else { nil }
        }
        let transient = errors.first { if case .transient = $0 { true } else { false } }
        return .failure(transient ?? errors.first ?? .noSuchName("no family was asked for"))
    }
}
