// SPDX-License-Identifier: Apache-2.0

internal import DialtoneModels
internal import Glibc

/// Attempts a second over the time since the server went, one panel for each scenario, both axes logarithmic.
struct HerdChart {
    private let lives: [HerdFigures.Life]

    /// For the families in their order.
    private static let colours = ["#1f6feb", "#d1570b", "#8250df", "#b8b8b8"]
    private static let (width, height) = (460.0, 250.0)
    private static let (left, top) = (56.0, 34.0)
    private static let (plotWidth, plotHeight) = (388.0, 180.0)
    private static let (longest, most) = (7200.0, 200_000.0)

    init(_ lives: [HerdFigures.Life]) {
        self.lives = lives
    }

    var svg: String {
        let panels = HerdFigures.scenarios.indices.map { index in
            let (x, y) = (Double(index % 2) * Self.width, Double(index / 2) * Self.height + 30)
            return "<g transform=\"translate(\(x) \(y))\">\n\(panel(index))</g>\n"
        }
        let (width, height) = (Int(Self.width * 2), Int(Self.height * 2 + 34))
        return """
            <!-- SPDX-License-Identifier: Apache-2.0 -->
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(width) \(height)" font-family="sans-serif" \
            font-size="11">
            <rect width="\(width)" height="\(height)" fill="white"/>
            \(legend)\(panels.joined())</svg>

            """
    }

    private var legend: String {
        var x = Self.left
        return lives.prefix(Self.colours.count).map { life in
            defer { x += 170 }
            let colour = colour(of: life)
            return "<rect x=\"\(x)\" y=\"12\" width=\"14\" height=\"4\" fill=\"\(colour)\"/>"
                + "<text x=\"\(x + 20)\" y=\"18\">\(life.family.filter { $0 != "`" })</text>\n"
        }.joined()
    }

    private func colour(of life: HerdFigures.Life) -> String {
        let place = lives.firstIndex { $0.family == life.family } ?? 0
        return Self.colours[place % Self.colours.count]
    }

    private func panel(_ scenario: Int) -> String {
        let name = HerdFigures.scenarios[scenario].name
        var parts = [
            "<text x=\"\(Self.left)\" y=\"22\" font-weight=\"bold\">The server \(name.asSentence)</text>\n", grid,
        ]
        let back = HerdFigures.scenarios[scenario].outage / .seconds(1)
        if back > 0 {
            let x = Self.x(back)
            parts.append(
                "<path d=\"M\(x) \(Self.top)V\(Self.top + Self.plotHeight)\" stroke=\"#2da44e\" "
                    + "stroke-dasharray=\"4 3\"/>\n"
            )
        }
        // The one to compare with lies below the others.
        for life in lives.reversed() where life.scenario == scenario { parts.append(curve(life)) }
        return parts.joined()
    }

    private var grid: String {
        let bottom = Self.top + Self.plotHeight
        var parts: [String] = []
        for (seconds, label) in [(1.0, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h")] {
            let x = Self.x(seconds)
            parts.append("<path d=\"M\(x) \(Self.top)V\(bottom)\" stroke=\"#e4e4e4\"/>")
            parts.append("<text x=\"\(x)\" y=\"\(bottom + 15)\" text-anchor=\"middle\">\(label)</text>\n")
        }
        for rate in [1, 10, 100, 1000, 10_000, 100_000] {
            let y = Self.y(Double(rate))
            parts.append("<path d=\"M\(Self.left) \(y)H\(Self.left + Self.plotWidth)\" stroke=\"#e4e4e4\"/>")
            parts.append("<text x=\"\(Self.left - 5)\" y=\"\(y + 4)\" text-anchor=\"end\">\(rate.grouped)</text>\n")
        }
        return parts.joined()
    }

    /// The attempts, averaged over steps that grow with the time, so that the curve has no more points than the eye.
    private func curve(_ life: HerdFigures.Life) -> String {
        var points: [String] = []
        var second = 0
        while second < life.outcome.attempts.count {
            let next = max(second + 1, Int(Double(second) * 1.03))
            let window = life.outcome.attempts[second..<min(next, life.outcome.attempts.count)]
            let rate = Double(window.reduce(0, +)) / Double(window.count)
            if rate >= 1 { points.append("\(Self.x(Double(second + 1))) \(Self.y(rate))") }
            second = next
        }
        let colour = colour(of: life)
        return
            "<path d=\"M\(points.joined(separator: "L"))\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"1.5\"/>\n"
    }

    private static func x(_ seconds: Double) -> Double {
        (left + plotWidth * log(max(seconds, 1)) / log(longest)).roundedToTenths
    }

    private static func y(_ rate: Double) -> Double {
        (top + plotHeight * (1 - log(max(rate, 1)) / log(most))).roundedToTenths
    }
}

extension Double {
    fileprivate var roundedToTenths: Double { (self * 10).rounded() / 10 }
}

extension String {
    /// With a verb, where it has none.
    fileprivate var asSentence: String { hasPrefix("back") ? "is \(self)" : self }
}
