// SPDX-License-Identifier: Apache-2.0

/// One reaction to one event, in nanoseconds.
struct Sample: Sendable {
    /// From the moment before the system call that made the event to the bare reader's wake-up.
    let bare: Int64
    /// From the bare reader's wake-up to the reaction; negative where the reaction came first.
    let difference: Int64
}

/// What a probe measured.
struct Measurement: Sendable {
    var samples: [Sample] = []
    /// Events that were not followed by a reaction in time. They are in no other figure.
    var missed = 0

    /// The reactions' distances from the bare reader.
    var differences: [Int64] { samples.map(\.difference) }
    /// The bare reader's own.
    var bare: [Int64] { samples.map(\.bare) }
}

extension [Int64] {
    /// The smallest value that at least this share of all do not exceed (nearest rank); `nil` of nothing.
    func percentile(_ share: Double) -> Int64? {
        guard !isEmpty else { return nil }
        let rank = Int((share * Double(count)).rounded(.up))
        return sorted()[Swift.max(0, Swift.min(count - 1, rank - 1))]
    }

    var median: Int64? { percentile(0.5) }
}

/// Nanoseconds as a person reads them, with a sign where they are a difference.
func timeText(_ nanoseconds: Int64?, signed: Bool = false) -> String {
    guard let nanoseconds else { return "-" }
    let sign = signed && nanoseconds >= 0 ? "+" : ""
    return switch nanoseconds.magnitude {
    case ..<1_000_000: "\(sign)\(nanoseconds / 1000) µs"
    default: "\(sign)\(decimal(Double(nanoseconds) / 1e6)) ms"
    }
}

/// A number with one decimal.
func decimal(_ value: Double) -> String {
    let tenths = (value * 10).rounded()
    return "\(Int(tenths) / 10).\(Int(tenths.magnitude) % 10)"
}
