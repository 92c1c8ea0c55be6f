// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlink

/// How metrics are written for a collector.
package enum ExpositionFormat: Sendable {
    /// OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec/, "Text Format").
    case openMetrics
    /// Prometheus' text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/): what node_exporter
    /// reads from files, and what older collectors read. It knows neither units, nor the time when a counter began, nor
    /// sets of states, which are gauges in it.
    case prometheus

    /// The media type of the text.
    package var mediaType: String {
        switch self {
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        }
    }

    /// The text of metrics.
    func text(of families: [MetricFamily]) -> String {
        var text = ""
        for family in families where !family.metrics.isEmpty {
            describe(family, &text)
            for metric in family.metrics { write(metric, of: family, &text) }
        }
        if self == .openMetrics { text += "# EOF\n" }
        return text
    }

    private func describe(_ family: MetricFamily, _ text: inout String) {
        switch self {
        case .openMetrics:
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            if let unit = family.unit { text += "# UNIT \(family.name) \(unit)\n" }
            text += "# HELP \(family.name) \(Self.escaped(family.help))\n"
        case .prometheus:
            let (name, kind) =
                switch family.kind {
                case .counter: ("\(family.name)_total", "counter")
                case .info: ("\(family.name)_info", "gauge")
                case .stateset: (family.name, "gauge")
                case .gauge, .histogram: (family.name, family.kind.rawValue)
                }
            text += "# HELP \(name) \(Self.escaped(family.help, quotes: false))\n# TYPE \(name) \(kind)\n"
        }
    }

    private func write(_ metric: MetricFamily.Metric, of family: MetricFamily, _ text: inout String) {
        let (name, labels) = (family.name, metric.labels)
        switch metric.value {
        case .integer(let number): line(name + family.kind.ending, labels, "\(number)", &text)
        case .number(let number): line(name + family.kind.ending, labels, "\(number)", &text)
        case .state(let present, let states):
            for state in states {
                line(name, labels + [.init(name, state)], state == present ? "1" : "0", &text)
            }
        case .histogram(let histogram):
            var count = 0
            for (bound, inBucket) in zip(histogram.bounds.map { "\($0)" } + ["+Inf"], histogram.counts) {
                // From a socket: what an agent that is none says, nobody counts on.
                count &+= inBucket
                line("\(name)_bucket", labels + [.init("le", bound)], "\(count)", &text)
            }
            line("\(name)_count", labels, "\(count)", &text)
            line("\(name)_sum", labels, "\(histogram.sum)", &text)
        }
        if let created = metric.created, self == .openMetrics {
            line("\(name)_created", labels, "\(created.seconds)", &text)
        }
    }

    private func line(_ name: String, _ labels: [MetricFamily.Label], _ value: String, _ text: inout String) {
        text += name
        if !labels.isEmpty {
            text += "{\(labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ","))}"
        }
        text += " \(value)\n"
    }

    /// As a label's value and the help stand in a line ("Escaping").
    ///
    /// - Parameter quotes: whether a quotation mark is escaped; not in the help of 0.0.4.
    private static func escaped(_ text: String, quotes: Bool = true) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\"" where quotes: escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}

extension MetricFamily.Kind {
    /// What a value's name has after the family's.
    fileprivate var ending: String {
        switch self {
        case .counter: "_total"
        case .info: "_info"
        case .gauge, .histogram, .stateset: ""
        }
    }
}

extension Timestamp {
    /// Seconds since 1970, as collectors count.
    var seconds: Double { Double(milliseconds) / 1000 }
}
