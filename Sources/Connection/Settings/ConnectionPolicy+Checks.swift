// SPDX-License-Identifier: Apache-2.0

/// What is wrong with a policy, and in which field.
package struct PolicyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The field's name as configuration and API spell it, as in `keepalive.idle`.
    package let field: String
    /// What is wrong with its value and what would be right.
    package let reason: String

    /// The field and what is wrong.
    package var description: String { "\(field): \(reason)" }

    /// Throws where `value` is not in `range`; a number that is none is in no range.
    static func check<Value: Comparable>(
        _ field: String, _ value: Value, in range: ClosedRange<Value>
    ) throws(PolicyError) {
        guard range.contains(value) else {
            throw PolicyError(field: field, reason: "\(value) is not from \(range.lowerBound) to \(range.upperBound)")
        }
    }
}

extension ConnectionPolicy {
    /// How long one address may be given to answer. Below a second not even one repeated SYN fits; above two minutes
    /// the kernel has given up by itself.
    package static let connectTimeouts = Duration.seconds(1)...Duration.seconds(120)
    /// How long a flow may be kept that has no way. After a minute a server has missed it, too.
    package static let graces = Duration.zero...Duration.seconds(60)
    /// How long sent data may stay unacknowledged, up to a day.
    package static let userTimeouts = Duration.seconds(1)...Duration.seconds(86_400)
    /// How long a flow may have to stand to be stable. Below ten seconds a server that accepts and kicks would count as
    /// stable, and be dialled without growing waits.
    package static let stableTimes = Duration.seconds(10)...Duration.seconds(86_400)
    /// The places in the order in which packets leave. What is above takes a capability (socket(7)), and is meant for
    /// the machinery of the network itself.
    package static let priorities = 0...SocketOptions.interactivePriority

    /// Checks every figure, before anything is computed with it.
    ///
    /// - Throws: the first field that is wrong.
    package func validate() throws(PolicyError) {
        try backoff.check()
        try validateTLS()
        try keepalive?.check()
        try heartbeat?.check(under: opening)
        try handler?.check(for: remote)
        if let problem = opening?.problem { throw PolicyError(field: "opening", reason: problem) }
        if let problem = answers.problem {
            throw PolicyError(field: "answers[\(problem.index)].\(problem.field)", reason: problem.reason)
        }
        try PolicyError.check("grace", grace, in: Self.graces)
        try PolicyError.check("connectTimeout", connectTimeout, in: Self.connectTimeouts)
        if let userTimeout { try PolicyError.check("userTimeout", userTimeout, in: Self.userTimeouts) }
        try PolicyError.check("priority", priority, in: Self.priorities)
        try PolicyError.check("stableAfter", stableAfter, in: Self.stableTimes)
    }

    private func validateTLS() throws(PolicyError) {
        if tls != TLSPolicy(), let problem = remote.lackOfTLS { throw problem }
        if let problem = tls.problems.first { throw problem }
    }
}

extension Remote {
    /// What is wrong with settings of TLS for it; `nil` where its scheme has TLS.
    package var lackOfTLS: PolicyError? {
        if needsTLS { return nil }
        let secured = Scheme.allCases.filter(\.needsTLS).map(\.rawValue).joined(separator: ", ")
        return PolicyError(field: "tls", reason: "\(scheme.rawValue) has no TLS; \(secured) have")
    }
}

extension TLSPolicy {
    /// All that is wrong with it, wherever the connection leads.
    package var problems: [PolicyError] {
        var problems: [PolicyError] = []
        for file in files where !file.hasPrefix("/") {
            problems.append(PolicyError(field: "tls", reason: "\"\(file)\" is not an absolute path"))
        }
        if let name = serverName, let problem = Remote.hostProblem(name) {
            problems.append(PolicyError(field: "tls.serverName", reason: "\"\(name)\" is not a host: \(problem)"))
        }
        let protocols = applicationProtocols ?? []
        // RFC 7301, section 3.1: one to 255 bytes each. Nobody offers more than a few.
        if protocols.count > 16 || !protocols.allSatisfy({ (1...255).contains($0.utf8.count) }) {
            let reason = "not up to 16 names of 1 to 255 bytes"
            problems.append(PolicyError(field: "tls.applicationProtocols", reason: reason))
        }
        return problems
    }
}
