// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI

/// `dialtone check --explain`: the answer, then what it rests on, and which of that decided.
package struct ExplanationScreen: Sendable {
    private let explanation: NetworkAPI.Explain.Reply
    private let target: String

    /// An explanation of the path to `target`, as the user wrote it.
    package init(_ explanation: NetworkAPI.Explain.Reply, target: String) {
        self.explanation = explanation
        self.target = target
    }

    /// The lines.
    package func lines(_ style: Style) -> [String] {
        let path = explanation.path
        let answer = PathText.check(path, target: target, without: explanation.without?.first)
        return style.sentence(answer, PathText.tone(path)) + [""] + without(style)
            + explanation.steps.map { line($0.subject.rawValue, $0.text, isDecisive: $0.decisive, style) }
            + (explanation.others ?? []).map { line("also", PathText.other($0), style) }
    }

    /// What goes along with the interface that was ignored.
    private func without(_ style: Style) -> [String] {
        guard let gone = explanation.without, gone.count > 1 else { return [] }
        return [line("without", "\(gone[0]), and with it \(gone.dropFirst().joined(separator: ", "))", style)]
    }

    private func line(_ label: String, _ text: String, isDecisive: Bool = false, _ style: Style) -> String {
        // As wide as the longest subject.
        let label = label + String(repeating: " ", count: max(0, "neighbour".count - label.count))
        guard isDecisive else { return "  \(style.paint(label, .faint))  \(text)" }
        return "  \(label)  \(style.paint("\(text)  <- decided", .bad))"
    }
}

extension PathText {
    /// The path to another address of a name: `2001:db8::7: no route`.
    static func other(_ path: NetworkAPI.Path) -> String {
        let address = path.destination ?? "another address"
        switch path.status {
        case .satisfied:
            return "\(address): route available" + (path.isLocalAddress ? " on this machine" : way(path))
        case .unsatisfied:
            // Its address stands before it already.
            var plain = path
            plain.destination = nil
            return "\(address): " + (path.reason.map { reason($0, plain) } ?? "not reachable")
        case .requiresConnection: return "\(address): route available once a connection is brought up"
        case .unknown: return "\(address): unknown"
        }
    }
}
