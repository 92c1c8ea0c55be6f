// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import DialtoneTLS
internal import Glibc

/// Asks a server whether it answers: connects to each of its addresses at once, and shakes hands where its scheme needs
/// TLS. Nothing of the scheme's own protocol is said.
package struct ServerProbe: Sendable {
    /// The result for one address.
    package struct Answer: Sendable {
        /// The address and the port.
        package let endpoint: Endpoint
        /// What TLS agreed on, `nil` for a scheme without; or why there is no connection.
        package let result: Result<TLSSummary?, FlowFailure>
        /// How long it took, from the SYN on.
        package let duration: Duration
    }

    private let requests: [FlowRequest]
    private let limit: Duration

    /// A question.
    ///
    /// - Parameters:
    ///   - requests: the sockets to make, one for each address. The TLS of all is that of the first.
    ///   - limit: how long an address may take to answer.
    package init(_ requests: [FlowRequest], limit: Duration) { (self.requests, self.limit) = (requests, limit) }

    /// Asks, and returns the result for each address, in their order. Blocks its thread until all have answered, and no
    /// longer than the limit.
    package func answers() -> [Answer] {
        let context: TLSContext?
        do throws(TLSFailure) {
            context = try requests.first?.tls.map { request throws(TLSFailure) in
                try Self.context(for: request.policy)
            }
        } catch {
            return requests.map { Answer(endpoint: $0.remote, result: .failure(.tls(error)), duration: .zero) }
        }
        let attempts = requests.map { ProbeAttempt($0, context) }
        let end = BootClock.now() + limit
        while true {
            for attempt in attempts { attempt.settle() }
            let open = attempts.filter { $0.result == nil }
            let left = (open.compactMap(\.settlesAt) + [end]).min().map { $0 - BootClock.now() } ?? .zero
            if open.isEmpty || BootClock.now() >= end { break }
            var sockets = open.map(\.awaited)
            // Rounded up: with 0 it would spin for the last millisecond.
            let count = poll(&sockets, nfds_t(sockets.count), CInt(clamping: max(left, .zero).milliseconds + 1))
            // Interrupted, it is called again.
            guard count >= 0 else { continue }
            for (attempt, socket) in zip(open, sockets) where socket.revents != 0 { attempt.advance() }
        }
        for attempt in attempts { attempt.giveUp() }
        return attempts.map(\.answer)
    }

    private static func context(for policy: TLSPolicy) throws(TLSFailure) -> TLSContext {
        let files = try SettingsFiles(of: policy)
        let number = withExtendedLifetime(files) { fcntl(files.numbers[0], F_DUPFD_CLOEXEC, 0) }
        if number < 0 { throw .broken("\(SystemError.last("opening the authorities"))") }
        return try TLSContext(policy, TLSFiles(authorities: OwnedDescriptor(number)))
    }
}
