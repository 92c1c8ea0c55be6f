// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
package import DialtoneConnectionIO
package import DialtonePlatform
package import Logging

/// Keeps what keepalives taught of the networks from one run of the daemon to the next.
@AgentQueue
package final class SavedIntervals {
    /// The file's name, and the longest that is read: twenty networks take two kilobytes, for 32 users.
    private static let file = "keepalive-intervals"
    private static let longestFile = 131_072
    /// With what the file of an earlier version begins.
    private static let unsealed = "dialtone-keepalive-intervals "
    /// The least time between two writes. What is learned in between is kept with the next one, or at the end.
    private let pause: Duration

    /// What the connections learn with.
    package let learners: IntervalLearners
    private let state: SavedState
    private let logger: Logger
    /// Whether what was learned last could not be written.
    private var hasFailed = false
    private var earliest = Duration.zero
    private var timer: Timers.Timer?

    /// Knows what stands in the file. One that is damaged is left aside, and what can be read of it is used.
    package init(_ state: SavedState, _ logger: Logger, pause: Duration = .seconds(300)) {
        self.state = state
        self.logger = logger
        self.pause = pause
        var text = ""
        do throws(SystemError) {
            let bytes = try state.read(Self.file, atMost: Self.longestFile)
            var isWhole = true
            if let bytes { (text, isWhole) = SealedLine.text(in: bytes) }
            if let bytes, text.isEmpty, bytes.starts(with: Self.unsealed.utf8) {
                // Of an earlier version, which wrote no checksums.
                (text, isWhole) = (String(decoding: bytes, as: UTF8.self), true)
            }
            if bytes != nil, !isWhole || AdaptiveInterval.text(of: AdaptiveInterval.users(in: text)) != text {
                try state.rename(Self.file, to: "\(Self.file).damaged")
                logger.notice(
                    "what was learned of keepalives is damaged; the rest of it is used",
                    metadata: ["left": "\(Self.file).damaged"])
            }
        } catch {
            logger.notice("what was learned of keepalives cannot be read", metadata: ["error": "\(error)"])
        }
        learners = IntervalLearners(text: text)
        learners.onLesson = { [weak self] in self?.saveSoon() }
    }

    private func saveSoon() {
        guard timer == nil else { return }
        timer = Timers.shared.schedule(at: max(earliest, BootClock.now())) { [weak self] in self?.save() }
    }

    /// Writes the file if there is something new. On a disk that is full the old one stays; that is told once, and
    /// tried again until there is room.
    package func save() {
        guard let due = timer else { return }
        due.cancel()
        timer = nil
        earliest = BootClock.now() + pause
        do throws(SystemError) {
            try state.replace(Self.file, with: SealedLine.file(learners.text))
            if hasFailed { logger.notice("what is learned of keepalives is kept again") }
            hasFailed = false
        } catch {
            if !hasFailed {
                logger.warning("what is learned of keepalives is not kept for now", metadata: ["error": "\(error)"])
            }
            hasFailed = true
            saveSoon()
        }
    }
}
