// SPDX-License-Identifier: Apache-2.0

package import DialtoneVarlink

/// `dialtone check --probe`: whether the server answered, and what each of its addresses did.
package struct ProbeScreen: Sendable, VarlinkWritable {
    /// The result for one address.
    package struct Answer: Hashable, Sendable, VarlinkWritable {
        /// The address and the port.
        package var address: String
        /// How long it took, in milliseconds; `nil` where it did not answer as it must.
        package var milliseconds: Double?
        /// Why it is no answer; `nil` for one.
        package var failure: String?
        /// Whether this user may not even ask so.
        package var isForbidden = false
        /// The version of TLS; `nil` where none was asked for.
        package var version: String?
        /// When the certificate ends.
        package var certificateEndsAt: Timestamp?

        /// A result.
        package init(
            address: String, milliseconds: Double? = nil, failure: String? = nil, version: String? = nil,
            certificateEndsAt: Timestamp? = nil
        ) {
            self.address = address
            self.milliseconds = milliseconds
            self.failure = failure
            self.version = version
            self.certificateEndsAt = certificateEndsAt
        }

        /// Writes its fields.
        package func write(to fields: inout some VarlinkFieldWriter) {
            fields.put("address", address)
            if let milliseconds { fields.put("milliseconds", milliseconds) }
            if let failure { fields.put("failure", failure) }
            if let version { fields.put("version", version) }
            if let certificateEndsAt { fields.put("certificateEndsAt", certificateEndsAt) }
        }
    }

    /// The results, an address each.
    package let answers: [Answer]
    private let target: String
    private let now: Timestamp

    /// The results of a probe of `target`, as the user wrote it.
    package init(_ answers: [Answer], target: String, now: Timestamp) {
        (self.answers, self.target, self.now) = (answers, target, now)
    }

    /// Whether any address answered.
    package var isReachable: Bool { answers.contains { $0.failure == nil } }

    /// Why it is not reachable, for the middle of a sentence.
    package var obstacle: String? {
        if isReachable { return nil }
        let failures = answers.map(text)
        if Set(failures).count <= 1 { return failures.first ?? "its addresses are not known" }
        return zip(answers, failures).map { "\($0.address): \($1)" }.joined(separator: "; ")
    }

    /// Writes its fields.
    package func write(to fields: inout some VarlinkFieldWriter) {
        fields.put("target", target)
        fields.put("reachable", isReachable)
        fields.put("answers", answers)
    }

    /// The lines: what it comes to and, where there are several addresses, each of them.
    package func lines(_ style: Style) -> [String] {
        let first = answers.filter { $0.failure == nil }.min { $0.milliseconds ?? 0 < $1.milliseconds ?? 0 }
        let summary =
            if let first {
                style.sentence("Reachable: \(target) \(text(first)).", .good)
            } else {
                style.sentence("Not reachable: \(target): \(obstacle ?? "").", .bad)
            }
        guard answers.count > 1 else { return summary }
        var table = Table()
        for answer in answers {
            table.add([.init(answer.address), .init(text(answer), answer.failure == nil ? .faint : .bad)])
        }
        return summary + table.lines(style).map { "  \($0)" }
    }

    private func text(_ answer: Answer) -> String {
        if let failure = answer.failure { return failure }
        var text = "answered in \(Self.text(milliseconds: answer.milliseconds ?? 0))"
        if let version = answer.version { text += ", TLS \(version)" }
        if let end = answer.certificateEndsAt {
            let days = (end - now).components.seconds / 86_400
            text += ", certificate verified, \(days) \(days == 1 ? "day" : "days") left"
        }
        return text
    }

    /// `12 ms`; below ten with a decimal.
    private static func text(milliseconds: Double) -> String {
        let tenths = Int((milliseconds * 10).rounded())
        return tenths < 100 ? "\(tenths / 10).\(tenths % 10) ms" : "\((tenths + 5) / 10) ms"
    }
}
