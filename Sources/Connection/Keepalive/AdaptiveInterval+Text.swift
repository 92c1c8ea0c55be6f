// SPDX-License-Identifier: Apache-2.0

extension AdaptiveInterval {
    /// What one user's keepalives have taught.
    package struct OfUser: Hashable, Sendable {
        /// The user.
        package let user: UInt32
        /// What was learned.
        package var learned: AdaptiveInterval

        /// Joins the two.
        package init(user: UInt32, _ learned: AdaptiveInterval) {
            self.user = user
            self.learned = learned
        }
    }

    /// How many users are remembered. Each takes two kilobytes of the file; those who learned last stay.
    package static let mostUsers = 32

    /// The first line of the text: what it is and of which form. The form before did not tell users apart.
    private static let heading = "dialtone-keepalive-intervals 2"

    /// All that was learned, as text to be kept in a file: a heading, and a line for each network of each user, the
    /// user who learned last and the network used last first. In it the user; the four words of the network's identity;
    /// interval, longest survived and shortest fatal silence in milliseconds (`-`: none); acknowledged keepalives since
    /// the last death; deaths.
    package static func text(of users: [OfUser]) -> String {
        let lines = users.flatMap { of in of.learned.networks.map { "\(of.user) \($0.line)" } }
        return ([heading] + lines).joined(separator: "\n") + "\n"
    }

    /// What was learned, from ``text(of:)``. A line that is none is left out, and so is everything of another form:
    /// nothing is lost by it but some learning.
    package static func users(in text: String) -> [OfUser] {
        let lines = text.split(separator: "\n")
        guard let first = lines.first, first == Self.heading else { return [] }
        var users: [OfUser] = []
        for line in lines.dropFirst() {
            let halves = line.split(separator: " ", maxSplits: 1)
            guard halves.count == 2, let user = UInt32(halves[0]), let network = Network(line: halves[1]) else {
                continue
            }
            if let known = users.firstIndex(where: { $0.user == user }) {
                users[known].learned.append(network)
            } else if users.count < mostUsers {
                var learned = AdaptiveInterval()
                learned.append(network)
                users.append(OfUser(user: user, learned))
            }
        }
        return users
    }
}

extension AdaptiveInterval.Network {
    fileprivate var line: String {
        let fatal = fatal.map { "\($0.wholeMilliseconds)" } ?? "-"
        return "\(identity) \(interval.wholeMilliseconds) \(survived.wholeMilliseconds) \(fatal) "
            + "\(beatsSinceDeath) \(deaths)"
    }

    fileprivate init?(line: Substring) {
        let plausible = AdaptiveInterval.plausible
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 9, let identity = NetworkIdentity(words[0..<4].joined(separator: " ")),
            let interval = Self.duration(words[4]), plausible.contains(interval),
            let survived = Self.duration(words[5]), survived <= plausible.upperBound,
            let beats = Int(words[7]), let deaths = Int(words[8]), beats >= 0, deaths >= 0
        else { return nil }
        self.init(identity: identity, interval: interval)
        self.survived = survived
        (beatsSinceDeath, self.deaths) = (min(beats, 1 << 32), min(deaths, 1 << 32))
        guard words[6] != "-" else { return }
        guard let fatal = Self.duration(words[6]), plausible.contains(fatal) else { return nil }
        self.fatal = fatal
    }

    private static func duration(_ word: Substring) -> Duration? {
        // Twelve digits are thirty years.
        guard word.utf8.count <= 12, let milliseconds = Int64(word), milliseconds >= 0 else { return nil }
        return .milliseconds(milliseconds)
    }
}

extension Duration {
    fileprivate var wholeMilliseconds: Int64 {
        components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    }
}
