// SPDX-License-Identifier: Apache-2.0

extension Duration {
    /// The duration as people say it: the two largest units that matter, no more. `75 ms`, `4.2 s`, `41 s`,
    /// `2 m 10 s`, `3 h 12 m`, `5 d 4 h`. A negative one (a clock that was set back) counts as none.
    package var short: String {
        let (whole, attoseconds) = components
        let milliseconds = max(0, Int64(clamping: Int128(whole) * 1000 + Int128(attoseconds / 1_000_000_000_000_000)))
        if milliseconds < 1000 { return "\(milliseconds) ms" }
        let seconds = milliseconds / 1000
        // Below ten seconds a reaction is judged by its tenths.
        if seconds < 10 { return "\(seconds).\(milliseconds % 1000 / 100) s" }
        return switch seconds {
        case ..<60: "\(seconds) s"
        case ..<3600: Self.two(seconds / 60, "m", seconds % 60, "s")
        case ..<86_400: Self.two(seconds / 3600, "h", seconds % 3600 / 60, "m")
        default: Self.two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h")
        }
    }

    private static func two(_ large: Int64, _ largeUnit: String, _ small: Int64, _ smallUnit: String) -> String {
        small == 0 ? "\(large) \(largeUnit)" : "\(large) \(largeUnit) \(small) \(smallUnit)"
    }
}
