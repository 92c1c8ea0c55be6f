// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform
internal import Glibc

/// Tells once that the certificate of a connection's flow ends soon.
@AgentQueue
final class CertificateWatch {
    /// How long before its end: a week, in which somebody is at work.
    private static let notice = Duration.seconds(7 * 86_400)
    /// How often the wall clock is looked at meanwhile: it may be set.
    private static let look = Duration.seconds(86_400)

    private var timer: Timers.Timer?
    /// The end that was told of.
    private var told: TLSSummary.CertificateEnd?

    /// Calls `handler` when this end is near; no other one's from now on.
    func watch(_ end: TLSSummary.CertificateEnd?, _ handler: @escaping @AgentQueue () -> Void) {
        timer?.cancel()
        timer = nil
        guard let end, end != told else { return }
        let left = Duration.seconds(end.seconds - Int64(time(nil))) - Self.notice
        if left > .zero {
            timer = Timers.shared.schedule(after: min(left, Self.look)) { [weak self] in self?.watch(end, handler) }
            return
        }
        told = end
        // The event that the flow stands comes first.
        AgentQueue.async { handler() }
    }
}

extension ConnectionDriver {
    /// Watches for the end of the certificate of the flow that stands.
    func watchCertificate() {
        guard policy.remote.needsTLS, let adoption = connection.adoption else { return }
        certificates.watch(adoption.security?.certificateEnd) { [weak self] in
            self?.process(.certificateEnds(epoch: adoption.epoch))
        }
    }
}
