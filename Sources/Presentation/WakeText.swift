// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneNetworkPath

/// The wakes of clients in words.
enum WakeText {
    /// What happened to a wake, with its tone.
    static func line(_ wake: ConnectionsAPI.Wake) -> (text: String, tone: Style.Tone) {
        let reasons = "for \(wake.reasons.map(\.rawValue).joined(separator: ", "))"
        let by = wake.means.map { "by \($0.rawValue)" } ?? "by nothing"
        let after = wake.after?.short ?? "no time"
        switch wake.stage {
        case .began, .joined: return ("waking \(reasons)", .faint)
        case .attempted: return ("waking \(by) \(reasons)", .faint)
        case .attemptFailed: return ("waking \(by) failed: \(wake.detail ?? "for no reason that is known")", .warning)
        case .acknowledged where wake.means == nil:
            // Nobody heard an event, and there was no other way; the client came all the same.
            return ("came by itself \(reasons), after \(after)", .good)
        case .acknowledged: return ("woken \(by) \(reasons), acknowledged after \(after)", .good)
        case .failed where wake.attempts == 0 && wake.means != nil:
            return ("its program failed time and again: left alone until there is something for it", .bad)
        case .failed where wake.attempts == 0: return ("nobody to wake \(reasons)", .faint)
        case .failed:
            let attempts = wake.attempts == 1 ? "1 attempt" : "\(wake.attempts) attempts"
            return ("not woken \(reasons): given up after \(attempts) in \(after)", .bad)
        case .programEnded: return ("its program ended \(wake.detail ?? "")", .warning)
        case .overran: return ("its client, woken \(reasons), has not parked it after \(after)", .warning)
        // Of a later version.
        default: return (wake.stage.rawValue, .faint)
        }
    }
}
