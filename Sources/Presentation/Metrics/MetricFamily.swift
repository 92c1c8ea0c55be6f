// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlink

/// All metrics of one name, as OpenMetrics has them ("MetricFamily", OpenMetrics 1.0).
struct MetricFamily {
    /// What kind of values they have.
    enum Kind: String {
        case gauge, counter, histogram, stateset, info
    }

    /// The value of one metric.
    enum Value {
        case integer(Int)
        case number(Double)
        /// Which of these states holds, if any.
        case state(String?, of: [String])
        case histogram(Histogram)
    }

    /// How often something took how long.
    struct Histogram {
        /// The upper bounds of all buckets but the last one, in seconds, ascending.
        let bounds: [Double]
        /// How often, by bucket.
        let counts: [Int]
        /// All the times together, in seconds.
        let sum: Double
    }

    /// One metric: labels that tell it from the others of the family, and its value.
    struct Metric {
        let labels: [Label]
        let value: Value
        /// When a counter or a histogram began at zero.
        var created: Timestamp?
    }

    /// A label. The value is escaped when it is written.
    struct Label {
        let name: String
        let value: String

        init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
    }

    /// Its name, without the endings that its kind adds (`_total`, `_info`).
    let name: String
    let kind: Kind
    /// The base unit that its name ends with; `nil` for what has none.
    var unit: String?
    /// What it says, in a sentence.
    let help: String
    /// None for a family of which there is nothing to tell now.
    var metrics: [Metric]
}
