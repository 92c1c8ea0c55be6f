// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import Logging

/// Where the log goes.
package enum LogOutput: Hashable, Sendable {
    /// To the journal, with fields.
    case journal
    /// To the standard error.
    case standardError(hasTime: Bool)

    /// The journal if the standard error leads there anyway, else the standard error, with the time if it is a
    /// terminal.
    ///
    /// `$JOURNAL_STREAM` holds the device and inode of the stream that the service manager connected (systemd.exec(5)).
    /// It is inherited, so it only counts when the standard error still is that stream and no pipe or file of a
    /// shell's.
    package static func detect() -> LogOutput {
        var status = stat()
        if fstat(STDERR_FILENO, &status) == 0, let stream = getenv("JOURNAL_STREAM"),
            String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
        {
            return .journal
        }
        return .standardError(hasTime: isatty(STDERR_FILENO) == 1)
    }

    /// A handler for `LoggingSystem.bootstrap`.
    ///
    /// - Parameters:
    ///   - identifier: the program's name.
    ///   - label: the logger's.
    ///   - level: the minimum log level.
    package func handler(identifier: String, label: String, level: Logger.Level) -> any LogHandler {
        switch self {
        case .journal: JournalLogHandler(identifier: identifier, label: label, level: level)
        case .standardError(let hasTime): StandardErrorLogHandler(level: level, hasTime: hasTime)
        }
    }
}
