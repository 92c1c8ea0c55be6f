// SPDX-License-Identifier: Apache-2.0

extension Explanation.Step {
    /// What a name stands for, or why for nothing.
    ///
    /// - Parameter isDecisive: whether that is why the target cannot be reached.
    package init(_ finding: NameFinding, isDecisive: Bool = false) {
        self.init(.name, finding.text, isDecisive: isDecisive)
    }
}

extension NameFinding {
    fileprivate var text: String {
        let asked = servers.isEmpty ? "no name server is configured" : "asked " + servers.inWords(joinedBy: "and")
        switch answer {
        case .addresses(let addresses, .hostsFile):
            return "\(name) is \(addresses.inWords(joinedBy: "and")), by the hosts file"
        case .addresses(let addresses, .definition):
            return "\(name) is \(addresses.inWords(joinedBy: "and")), by definition"
        case .addresses(let addresses, .server(let timeLeft)):
            let seconds = max(0, timeLeft.components.seconds)
            return "\(name) is \(addresses.inWords(joinedBy: "and")), by DNS (\(seconds) s left)"
        case .none(let words): return "\(name) has no address: \(words) (\(asked))"
        case .silence(let words): return "nobody said what \(name) is: \(words) (\(asked))"
        }
    }
}

extension [IPAddress] {
    /// `192.0.2.1, 192.0.2.2 and 2001:db8::1`.
    fileprivate func inWords(joinedBy conjunction: String) -> String {
        guard count > 1, let last else { return first?.description ?? "" }
        return dropLast().map(\.description).joined(separator: ", ") + " \(conjunction) \(last)"
    }
}
