// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtonePlatform

extension ConnectionsAPI.Wake {
    /// A report as clients and the history get it.
    init(_ report: WakeReport) {
        var (stage, detail, after) = (Stage.began, String?.none, Duration?.none)
        switch report.kind {
        case .began: stage = .began
        case .joined: stage = .joined
        case .attempted: stage = .attempted
        case .attemptFailed(_, let reason): (stage, detail) = (.attemptFailed, reason)
        case .acknowledged(let duration): (stage, after) = (.acknowledged, duration)
        case .failed(let duration): (stage, after) = (.failed, duration)
        case .programEnded(let end): (stage, detail) = (.programEnded, end.text)
        case .overran(let limit): (stage, after) = (.overran, limit)
        }
        let wake = report.wake
        self.init(
            number: Int(clamping: wake.number), stage: stage,
            reasons: wake.reasons.map { .init(rawValue: $0.rawValue) },
            means: wake.means.map { .init(rawValue: $0.rawValue) }, attempts: wake.attempts, detail: detail,
            after: after)
    }
}

extension ProgramEnd {
    /// For the end of a sentence.
    fileprivate var text: String {
        switch self {
        case .exited(let status): "with status \(status)"
        case .killed(let signal): "by signal \(signal)"
        case .unseen: "while nobody could see how"
        }
    }
}

extension WakeReport {
    /// Whether the morning after wants to know: what woke whom, by what means, whether and how soon it was
    /// acknowledged, in one line; and what went wrong.
    var isWorthTelling: Bool {
        switch kind {
        case .began, .joined, .attempted: false
        case .attemptFailed, .acknowledged, .failed, .overran: true
        case .programEnded(let end): end.isFailure
        }
    }

    /// Whether there may be thousands of it in a night, of wakes that come to a good end.
    var isRoutine: Bool {
        switch kind {
        case .attemptFailed, .acknowledged: true
        case .began, .joined, .attempted, .failed, .programEnded, .overran: false
        }
    }
}
