// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSystemd
internal import Glibc
package import Logging

/// Logs to the journal by its own protocol, sd_journal_sendv(3), with a field for each value.
///
/// `journalctl -u dialtoned` shows the message with its values; `journalctl DIALTONE_CONNECTION=office` finds the
/// entries by one.
package struct JournalLogHandler: LogHandler {
    /// Values that every entry gets.
    package var metadata: Logger.Metadata = [:]
    /// Values that each entry asks for.
    package var metadataProvider: Logger.MetadataProvider?
    /// The least level that is sent.
    package var logLevel: Logger.Level
    private let identifier: String
    private let label: String

    /// A handler.
    ///
    /// - Parameters:
    ///   - identifier: the program's name, `SYSLOG_IDENTIFIER`.
    ///   - label: the logger's, the field `LOGGER`.
    package init(identifier: String, label: String, level: Logger.Level) {
        self.identifier = identifier
        self.label = label
        logLevel = level
    }

    /// The value of the named field for every entry.
    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Sends one entry. If the journal refuses it, it goes to the standard error as a line. (Where there is no journal
    /// at all, libsystemd drops entries in silence; ``LogOutput/detect()`` does not choose this handler there.)
    ///
    /// The send waits while the journal's socket is full. That is meant: journald is supervised by its own watchdog,
    /// and the lines that are lost otherwise are those that explain a storm.
    package func log(event: LogEvent) {
        let line = LogLine(event, metadata, metadataProvider)
        if Self.send(entry(event.level, line)) < 0 { writeToStandardError("\(identifier): \(line.text)") }
    }

    /// The fields of an entry, as `NAME=value`.
    func entry(_ level: Logger.Level, _ line: LogLine) -> [String] {
        [
            "MESSAGE=\(line.text)", "PRIORITY=\(level.priority)", "SYSLOG_IDENTIFIER=\(identifier)", "LOGGER=\(label)",
        ] + (line.messageID.map { ["\(JournalMessage.key)=\($0)"] } ?? [])
            + line.fields.map { "\(Self.fieldName($0.key))=\($0.value)" }
    }

    /// A key as the journal takes it: upper-case ASCII letters, digits and underscores, 64 bytes at most
    /// (journal-file.c, `journal_field_valid`). The prefix keeps it apart from others' fields.
    static func fieldName(_ key: String) -> String {
        let name = String(key.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
        return String("DIALTONE_\(name)".prefix(64))
    }

    private static func send(_ fields: [String]) -> CInt {
        let sizes = fields.map(\.utf8.count)
        return Array(fields.joined().utf8).withUnsafeBytes { bytes in
            var offset = 0
            let vectors = sizes.map { size in
                defer { offset += size }
                // Read only, whatever the type says.
                let start = bytes.baseAddress.map { UnsafeMutableRawPointer(mutating: $0 + offset) }
                return iovec(iov_base: start, iov_len: size)
            }
            return sd_journal_sendv(vectors, CInt(vectors.count))
        }
    }
}

extension Logger.Level {
    /// The level as syslog(3) counts.
    fileprivate var priority: CInt {
        switch self {
        case .trace, .debug: LOG_DEBUG
        case .info: LOG_INFO
        case .notice: LOG_NOTICE
        case .warning: LOG_WARNING
        case .error: LOG_ERR
        case .critical: LOG_CRIT
        }
    }
}
