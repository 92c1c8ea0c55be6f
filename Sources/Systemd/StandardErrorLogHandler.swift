// SPDX-License-Identifier: Apache-2.0

// `timespec` comes to this module through libsystemd's headers.
internal import CDialtoneSystemd
internal import Glibc
package import Logging

/// Logs to the standard error, a line for each event.
package struct StandardErrorLogHandler: LogHandler {
    /// Values that every line gets.
    package var metadata: Logger.Metadata = [:]
    /// Values that each line asks for.
    package var metadataProvider: Logger.MetadataProvider?
    /// The least level that is written.
    package var logLevel: Logger.Level
    private let hasTime: Bool

    /// A handler.
    ///
    /// - Parameter hasTime: whether lines begin with the time of day, as a person at a terminal wants it. Elsewhere the
    ///   one who collects the lines adds it.
    package init(level: Logger.Level, hasTime: Bool) {
        logLevel = level
        self.hasTime = hasTime
    }

    /// The value of the named field for every line.
    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes one line.
    package func log(event: LogEvent) {
        writeToStandardError(text(of: event))
    }

    func text(of event: LogEvent) -> String {
        let line = LogLine(event, metadata, metadataProvider).text
        return "\(hasTime ? "\(Self.timeOfDay()) " : "")\(event.level): \(line)"
    }

    /// Local time to the millisecond: `14:02:11.042`.
    private static func timeOfDay() -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var local = tm()
        localtime_r(&now.tv_sec, &local)
        func padded(_ number: Int, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let clock = [local.tm_hour, local.tm_min, local.tm_sec].map { padded(Int($0), 2) }.joined(separator: ":")
        return "\(clock).\(padded(now.tv_nsec / 1_000_000, 3))"
    }
}

/// Writes a line in one call, so that the lines of several threads and processes do not mix. What a full pipe, or a
/// terminal that was stopped, does not take is lost: nobody waits for a log that nobody reads.
func writeToStandardError(_ line: String) {
    writeWithoutWaiting(line, to: STDERR_FILENO)
}

/// As ``writeToStandardError(_:)``, for any descriptor.
///
/// The descriptor is shared with the shell and its other programs, and cannot be made non-blocking under them. A pipe
/// that poll(2) calls writable has room for `PIPE_BUF` bytes (pipe(7)), so a line is cut to that.
func writeWithoutWaiting(_ line: String, to descriptor: CInt) {
    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&state, 1, 0) == 1 else { return }
    let bytes = Array(line.utf8.prefix(Int(PIPE_BUF) - 1)) + [UInt8(ascii: "\n")]
    _ = write(descriptor, bytes, bytes.count)
}
