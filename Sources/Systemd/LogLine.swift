// SPDX-License-Identifier: Apache-2.0

internal import Logging

/// What both log handlers make of an event: the message with its values, in one line.
struct LogLine {
    /// Keys and values, later sources over earlier ones, sorted by key so that lines of a kind look alike.
    let fields: [(key: String, value: String)]
    /// The message, followed by `key=value` for each field.
    let text: String

    init(_ event: LogEvent, _ metadata: Logger.Metadata, _ provider: Logger.MetadataProvider?) {
        var merged = provider?.get() ?? [:]
        merged.merge(metadata) { $1 }
        merged.merge(event.metadata ?? [:]) { $1 }
        if let error = event.error { merged["error"] = "\(error)" }
        fields = merged.sorted { $0.key < $1.key }.map { ($0.key, Self.printable("\($0.value)")) }
        text = fields.reduce(Self.printable(event.message.description)) { line, field in
            // Quoted where a reader, or a script that splits at spaces, would see the value end too early.
            let isPlain = !field.value.isEmpty && !field.value.contains { $0 == " " || $0 == "\"" || $0 == "=" }
            let escaped = field.value.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"")
            return "\(line) \(field.key)=\(isPlain ? field.value : "\"\(escaped)\"")"
        }
    }

    /// The text without control characters. Servers and clients write into the log (names, refusals); a line feed
    /// would let them forge a line, an escape sequence reach the administrator's terminal.
    private static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return text.unicodeScalars.reduce(into: "") { result, scalar in
            result += isControl(scalar) ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
        }
    }

    /// C0, delete and C1.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
    }
}
