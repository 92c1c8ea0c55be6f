// SPDX-License-Identifier: Apache-2.0

internal import DialtonePresentation

/// The table of what was measured, row for row what the design asks for. What cannot be measured yet has its row too.
struct Report {
    private var table = Table(["WHAT", "TO REACH", "MEASURED", "P99", "N", "BARE READER", "RATIO"])

    /// A row of reaction times: how much later than the bare reader, and how many times its time in all.
    mutating func add(_ what: String, toReach: String, _ measurement: Measurement) {
        let missed = measurement.missed > 0 ? ", \(measurement.missed) missed" : ""
        table.add([
            .init(what), .init(toReach), .init(timeText(measurement.differences.median, signed: true)),
            .init(timeText(measurement.differences.percentile(0.99), signed: true)),
            .init("\(measurement.samples.count)\(missed)"), .init(timeText(measurement.bare.median)),
            .init(measurement.ratio),
        ])
    }

    /// A row of something that is not a distribution, of something known from elsewhere, or not measured yet.
    mutating func add(_ what: String, toReach: String = "", _ value: String, p99: String = "", n: String = "") {
        table.add([.init(what), .init(toReach), .init(value), .init(p99), .init(n)])
    }

    /// The table, line by line.
    var lines: [String] { table.lines(Style(hasColour: false)) }
}

extension Measurement {
    /// How many times what the bare reader took the reaction took, at the median, both from the event's beginning.
    fileprivate var ratio: String {
        guard let bare = bare.median, bare > 0, let whole = samples.map({ $0.bare + $0.difference }).median else {
            return "-"
        }
        return "× \(decimal(Double(whole) / Double(bare)))"
    }
}
