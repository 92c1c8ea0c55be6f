// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Logging

/// What both log handlers make of an event: the message with its values, in one line.
struct LogLine {
    /// Keys and values, later sources over earlier ones, sorted by key so that lines of a kind look alike.
    let fields: [(key: String, value: String)]
    /// The kind of the entry, where it has one.
    let messageID: String?
    /// The message, followed by `key=value` for each field.
    let text: String

    init(_ event: LogEvent, _ metadata: Logger.Metadata, _ provider: Logger.MetadataProvider?) {
        var merged = provider?.get() ?? [:]
        merged.merge(metadata) { $1 }
        merged.merge(event.metadata ?? [:]) { $1 }
        if let error = event.error { merged["error"] = "\(error)" }
        messageID = merged.removeValue(forKey: JournalMessage.key).map { "\($0)" }
        fields = merged.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)".printable) }
        text = fields.reduce(event.message.description.printable) { line, field in
            // Quoted where a reader, or a script that splits at spaces, would see the value end too early.
            let isPlain = !field.value.isEmpty && !field.value.contains { $0 == " " || $0 == "\"" || $0 == "=" }
            let escaped = field.value.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\\\"")
            return "\(line) \(field.key)=\(isPlain ? field.value : "\"\(escaped)\"")"
        }
    }
}
