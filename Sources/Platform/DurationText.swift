// SPDX-License-Identifier: Apache-2.0

extension Duration {
    private static let units: [(suffix: String, length: Duration)] = [
        ("h", .seconds(3600)), ("m", .seconds(60)), ("s", .seconds(1)), ("ms", .milliseconds(1)),
    ]

    /// The longest that a configuration can say: a hundred days. Beyond is a slip of the keyboard.
    private static let longestInText = Duration.seconds(100 * 86_400)

    /// A duration as it is written in the configuration: whole numbers with their units `h`, `m`, `s` and `ms`, the
    /// larger first, none twice: `120s`, `1m30s`, `500ms`. No spaces and no fractions.
    package init?(configurationText text: String) {
        var rest = text[...]
        var units = Self.units[...]
        var total = Duration.zero
        repeat {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            guard let number = Int32(digits) else { return nil }
            rest = rest.dropFirst(digits.count)
            let suffix = rest.prefix { $0.isLetter }
            guard let unit = units.firstIndex(where: { $0.suffix == suffix }) else { return nil }
            total += units[unit].length * Int(number)
            rest = rest.dropFirst(suffix.count)
            units = units[(unit + 1)...]
        } while !rest.isEmpty
        guard total <= Self.longestInText else { return nil }
        self = total
    }

    /// This duration as it would be written in the configuration, to the millisecond.
    package var configurationText: String {
        if self < .zero { return "-" + (.zero - self).configurationText }
        var rest = milliseconds
        var text = ""
        for (suffix, length) in Self.units where rest >= length.milliseconds {
            text += "\(rest / length.milliseconds)\(suffix)"
            rest %= length.milliseconds
        }
        return text.isEmpty ? "0s" : text
    }
}
