// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSQLite

/// Why something of the store could not be done.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was tried, in the gerund: "saving to /home/ann/.local/state/dialtone/push.db".
    package let operation: String
    /// SQLite's extended result code; `SQLITE_OK` where it is none of SQLite's.
    package let code: CInt
    /// What came back.
    package let text: String

    /// Whether the file is no database, or a damaged one.
    package var isDamage: Bool { [SQLITE_CORRUPT, SQLITE_NOTADB].contains(code & 0xFF) }

    /// Whether it may go better later without anybody's doing: another process has the file, and ends; or the disk is
    /// full, or has no answer.
    package var mayPass: Bool {
        [SQLITE_BUSY, SQLITE_LOCKED, SQLITE_FULL, SQLITE_IOERR].contains(code & 0xFF)
    }

    /// What was tried and what came back, for the end of a sentence.
    package var description: String { "\(operation): \(text)" }
}
