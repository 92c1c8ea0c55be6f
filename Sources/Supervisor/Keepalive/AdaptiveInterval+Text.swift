// SPDX-License-Identifier: Apache-2.0

extension AdaptiveInterval {
    /// The first line of the text: what it is and of which form.
    private static let heading = "dialtone-keepalive-intervals 1"

    /// All that was learned, as text to be kept in a file: a heading, and a line for each network, the one used last
    /// first. In it the four words of its identity; interval, longest survived and shortest fatal silence in
    /// milliseconds (`-`: none); acknowledged keepalives since the last death; deaths.
    public var text: String {
        let lines = networks.map { network in
            let fatal = network.fatal.map { "\($0.wholeMilliseconds)" } ?? "-"
            return "\(network.identity) \(network.interval.wholeMilliseconds) \(network.survived.wholeMilliseconds) "
                + "\(fatal) \(network.beatsSinceDeath) \(network.deaths)"
        }
        return ([Self.heading] + lines).joined(separator: "\n") + "\n"
    }

    /// What was learned, from ``text``. A line that is none is left out, and so is everything of another form: nothing
    /// is lost by it but some learning.
    public init(text: String) {
        self.init()
        let lines = text.split(separator: "\n")
        guard let first = lines.first, first == Self.heading else { return }
        for line in lines.dropFirst() where networks.count < Self.mostNetworks {
            guard let network = Network(line: line),
                !networks.contains(where: { $0.identity == network.identity })
            else { continue }
            append(network)
        }
    }
}

extension AdaptiveInterval.Network {
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
