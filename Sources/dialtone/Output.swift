// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Glibc
internal import Synchronization

/// Standard output: text for people, one JSON object a line for scripts.
enum Output {
    /// In colour where that is wanted, and as wide as the terminal.
    static var style: Style {
        let isTerminal = isatty(STDOUT_FILENO) == 1
        let width = isTerminal ? terminalWidth : nil
        return switch ColorOption.chosen.withLock({ $0 }) {
        case .auto: Style(isTerminal: isTerminal, environment: environment, width: width)
        case .always: Style(hasColour: true, width: width)
        case .never: Style(hasColour: false, width: width)
        }
    }

    /// The process's environment.
    static let environment = processEnvironment()

    /// The columns of the terminal that standard output is; `nil` where it has none. People change it.
    static var terminalWidth: Int? {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Writes lines, at once: what reads a pipe must not wait for a buffer to fill.
    static func write(_ lines: [String]) {
        if lines.isEmpty { return }
        write(bytes: Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    /// Writes one line of JSON.
    static func write(json object: some VarlinkWritable) { write(bytes: object.json + [UInt8(ascii: "\n")]) }

    /// Writes a line to the standard error.
    static func fail(_ line: String) {
        let text = line.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).printable }
        let bytes = Array("dialtone: \(text.joined(separator: "\n"))\n".utf8)
        _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }

    /// Writes to the terminal, beside what the command puts out.
    static func prompt(_ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }

    /// Ends the process as soon as nobody reads its output any more (`dialtone watch | head -1`), not only when there
    /// is a next line to write: on a quiet network that may be hours away.
    @AgentQueue
    static func endWithReader() throws {
        do throws(SystemError) {
            _ = try Poller.shared.register(STDOUT_FILENO, []) { _ in exit(EXIT_SUCCESS) }
        } catch {
            // A file has no reader to lose, and epoll will not have it (EPERM).
            if error.code != EPERM { throw error }
        }
    }

    /// Writes bytes as they are.
    static func write(bytes: [UInt8]) {
        do throws(SystemError) {
            try write(bytes, to: STDOUT_FILENO, "writing to the standard output")
        } catch {
            // The reader is gone (`dialtone watch | head`), so there is no reason to go on.
            if error.code == EPIPE { exit(EXIT_SUCCESS) }
            fail("\(error)")
            exit(EX_IOERR)
        }
    }

    private static func write(_ bytes: [UInt8], to number: CInt, _ operation: String) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(number, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR { continue }
                throw .last(operation)
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Writes a file anew.
    static func write(_ text: String, to file: String) throws(SystemError) {
        let number = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw .last("opening it") }
        let descriptor = OwnedDescriptor(number)
        try write(Array(text.utf8), to: descriptor.number, "writing it")
    }

    /// The local date and time.
    private static func local(_ time: Timestamp) -> tm {
        var seconds = time_t(time.milliseconds / 1000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return parts
    }

    private static func two(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// The local date.
    static func localDate(_ time: Timestamp) -> SinceText.Local {
        let parts = local(time)
        return .init(year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday))
    }

    /// The local day, as in `Sunday 2026-11-22`, and the local time of day, as in `14:02:11.042`.
    static let localTime = LocalTime(
        day: { time in
            let parts = local(time)
            let days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
            return "\(days[Int(parts.tm_wday)]) \(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        },
        clock: { time in
            let parts = local(time)
            let milliseconds = String(1000 + time.milliseconds % 1000).dropFirst()
            return "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)).\(milliseconds)"
        })

    /// When the clock on the wall shows this.
    static func instant(_ local: SinceText.Local) -> Timestamp? {
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (
            CInt(local.year - 1900), CInt(local.month - 1), CInt(local.day)
        )
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (CInt(local.hour), CInt(local.minute), CInt(local.second))
        parts.tm_isdst = -1
        let seconds = mktime(&parts)
        return seconds == -1 ? nil : Timestamp(milliseconds: Int64(seconds) * 1000)
    }
}
