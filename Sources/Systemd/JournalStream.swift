// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSystemd
package import DialtonePlatform
internal import Glibc

/// A stream into the journal for a program that is launched, sd_journal_stream_fd(3): each line that it writes is an
/// entry under a name of its own, and not under the agent's.
package enum JournalStream {
    /// Opens a stream.
    ///
    /// - Parameter identifier: the entries' `SYSLOG_IDENTIFIER`.
    /// - Throws: why there is none: `ENOENT` where no journal runs.
    package static func open(identifier: String) throws(SystemError) -> OwnedDescriptor {
        let number = sd_journal_stream_fd(identifier, LOG_INFO, 1)
        if number < 0 { throw SystemError("opening a stream into the journal", code: -number) }
        return OwnedDescriptor(number)
    }
}
