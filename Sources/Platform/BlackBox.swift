// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneBlackBox
internal import Glibc

/// What this process is at work on, in a page of memory that outlives it; and the one line in the log with which a
/// fatal signal ends it.
///
/// To note a piece of work takes some stores and no system call. The note is gone when the work is done, so one that is
/// found later tells what a process was at when it ended.
package final class BlackBox: Sendable {
    /// Something that somebody else has this process do.
    package enum Work: Hashable, Sendable {
        /// A message of a user; its method is empty where it was not read yet.
        case call(method: String, user: UInt32)
        /// What the server of a user's connection sent.
        case bytes(connection: String, user: UInt32)
        /// The files of the configuration.
        case configuration
    }

    /// How a process ended that did not end in order.
    package struct Crash: Hashable, Sendable {
        /// What it was at work on; `nil` for nothing that anybody asked for.
        package var work: Work?
        /// What tells its message from others; 0 where there was none.
        package var digest: UInt64
        /// The signal that it noted; `nil` where it had no time to, as by SIGKILL.
        package var signal: Int32?

        /// A crash.
        package init(_ work: Work?, digest: UInt64 = 0, signal: Int32? = nil) {
            (self.work, self.digest, self.signal) = (work, digest, signal)
        }
    }

    /// What is remembered of somebody for whom processes crashed.
    package struct Entry: Hashable, Sendable {
        /// What they were at work on.
        package var work: Work
        /// What tells the last message from others.
        package var digest: UInt64
        /// How many in a row.
        package var count: Int
        /// When the last one did, on the ``BootClock``.
        package var latest: Duration

        /// An entry.
        package init(_ work: Work, digest: UInt64, count: Int, latest: Duration) {
            (self.work, self.digest, self.count, self.latest) = (work, digest, count, latest)
        }
    }

    /// How many entries there is room for.
    package static let mostEntries = Int(black_box_entries)

    /// Never unmapped. Notes are written by the queue whose place it is, the rest before ``watch(program:isJournal:)``.
    nonisolated(unsafe) private let page: UnsafeMutablePointer<black_box>

    /// A box in memory of this process.
    package init() throws(SystemError) {
        guard let page = black_box_map(-1) else { throw .last("making a note of what is under way") }
        self.page = page
    }

    /// The box in a file (``file()``), which stays the caller's.
    package init(_ file: borrowing OwnedDescriptor) throws(SystemError) {
        guard let page = black_box_map(file.number) else { throw .last("reading what was under way") }
        self.page = page
    }

    /// A new file for a box.
    package static func file() throws(SystemError) -> OwnedDescriptor {
        let file = try OwnedDescriptor.fileInMemory("dialtone-box")
        if ftruncate(file.number, off_t(MemoryLayout<black_box>.size)) != 0 { throw .last("making a file in memory") }
        return file
    }

    /// How the process before ended; `nil` if in order, or if there was none. Not after ``watch(program:isJournal:)``.
    package var crash: Crash? {
        guard page.pointee.is_open != 0 else { return nil }
        let signal = page.pointee.signal == 0 ? nil : Int32(truncatingIfNeeded: page.pointee.signal)
        // Where it noted no signal, whatever was under way may have been the cause.
        let works = [page.pointee.works.0, page.pointee.works.1]
        let places = signal == nil ? [0, 1] : [Int(page.pointee.place) - 1]
        for place in places where works.indices.contains(place) {
            if let work = Work(works[place].kind, works[place].user, text(works[place].text)) {
                return Crash(work, digest: works[place].digest, signal: signal)
            }
        }
        return Crash(nil, signal: signal)
    }

    /// What is remembered of those for whom processes crashed.
    package var entries: [Entry] {
        get {
            withEntries { entries in
                entries.compactMap { entry in
                    Work(entry.kind, entry.user, text(entry.text)).map {
                        Entry(
                            $0, digest: entry.digest, count: Int(entry.count),
                            latest: .milliseconds(Int64(clamping: entry.milliseconds)))
                    }
                }
            }
        }
        set {
            withEntries { entries in
                for (index, place) in entries.indices.enumerated() {
                    entries[place] = newValue.indices.contains(index) ? black_box_entry(newValue[index]) : .init()
                }
            }
        }
    }

    /// How many processes in a row began and did not last.
    package var unsettledStarts: Int {
        get { Int(page.pointee.starts) }
        set { page.pointee.starts = UInt32(clamping: newValue) }
    }

    private func withEntries<Value>(_ body: (UnsafeMutableBufferPointer<black_box_entry>) -> Value) -> Value {
        withUnsafeMutableBytes(of: &page.pointee.entries) { body($0.bindMemory(to: black_box_entry.self)) }
    }

    /// Has everything noted here from now on, and a line written by a fatal signal. Once in a process.
    ///
    /// - Parameter isJournal: whether the standard error leads to the journal, where a line has a priority.
    package func watch(program: StaticString, isJournal: Bool) {
        program.withUTF8Buffer { name in
            name.withMemoryRebound(to: CChar.self) { black_box_watch(page, $0.baseAddress, isJournal ? 1 : 0) }
        }
    }

    // MARK: - Notes

    /// Notes that a message of a user is read and answered, while `body` does that.
    @AgentQueue
    package static func noteCall<Failure>(
        of user: UInt32, _ message: [UInt8], _ body: @AgentQueue () throws(Failure) -> Void
    ) throws(Failure) {
        let isOutermost = message.withUnsafeBytes { begin(black_box_agent, black_box_call, user, $0, "") }
        defer { if isOutermost { black_box_end(CInt(black_box_agent.rawValue)) } }
        try body()
    }

    /// Says which method the message calls that is being answered.
    @AgentQueue
    package static func noteMethod(_ name: String) {
        var name = name
        name.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                black_box_name(CInt(black_box_agent.rawValue), $0.baseAddress, $0.count)
            }
        }
    }

    /// Notes that what the server of a user's connection sent is read, while `body` does that.
    @AgentQueue
    package static func noteBytes(of connection: String, _ user: UInt32, _ body: @AgentQueue () -> Void) {
        let isOutermost = begin(black_box_agent, black_box_connection, user, nil, connection)
        body()
        if isOutermost { black_box_end(CInt(black_box_agent.rawValue)) }
    }

    /// Notes that the configuration is read, while `body` does that on the one queue for it.
    package static func noteConfiguration<Value, Failure>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value
    {
        let isOutermost = begin(black_box_loader, black_box_configuration, 0, nil, "")
        defer { if isOutermost { black_box_end(CInt(black_box_loader.rawValue)) } }
        return try body()
    }

    private static func begin(
        _ place: black_box_place, _ kind: black_box_kind, _ user: UInt32, _ message: UnsafeRawBufferPointer?,
        _ text: String
    ) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                black_box_begin(
                    CInt(place.rawValue), CInt(kind.rawValue), user, message?.baseAddress, message?.count ?? 0,
                    $0.baseAddress, $0.count) != 0
            }
        }
    }
}

/// A text of C, up to its NUL.
private func text(_ characters: some Any) -> String {
    withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}

extension BlackBox.Work {
    /// What stands in the box; `nil` for nothing, or what no process writes.
    fileprivate init?(_ kind: UInt32, _ user: UInt32, _ text: String) {
        switch kind {
        case black_box_call.rawValue: self = .call(method: text, user: user)
        case black_box_connection.rawValue: self = .bytes(connection: text, user: user)
        case black_box_configuration.rawValue: self = .configuration
        default: return nil
        }
    }
}

extension black_box_entry {
    fileprivate init(_ entry: BlackBox.Entry) {
        self.init()
        var name = ""
        switch entry.work {
        case .call(let method, let user): (kind, self.user, name) = (black_box_call.rawValue, user, method)
        case .bytes(let connection, let user):
            (kind, self.user, name) = (black_box_connection.rawValue, user, connection)
        case .configuration: kind = black_box_configuration.rawValue
        }
        digest = entry.digest
        count = UInt32(clamping: entry.count)
        milliseconds = UInt64(clamping: entry.latest.milliseconds)
        withUnsafeMutableBytes(of: &text) { $0.copyBytes(from: name.utf8.prefix($0.count - 1)) }
    }
}
