// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
internal import FoundationEssentials
internal import OrderedCollections
package import Platform

/// The files of the history: a pair for the network and the agent itself, and one for each user, so that what one user
/// does pushes out nothing of another's.
@AgentQueue
package final class HistoryFiles {
    /// A line of a file: what a client gets, and who may.
    package struct Line: Codable {
        /// Whose connection it is; `nil` for what everybody may know.
        package var owner: UInt32?
        /// By what lines of different files are put in order: microseconds since 1970, raised where need be so that no
        /// two of a run are the same.
        package var order: Int64?
        package var entry: ConnectionsAPI.History.Reply

        package init(owner: UInt32?, order: Int64? = nil, entry: ConnectionsAPI.History.Reply) {
            (self.owner, self.order, self.entry) = (owner, order, entry)
        }
    }

    private enum Share: Hashable {
        case common
        case user(UInt32)

        init(_ owner: UInt32?) { self = owner.map { .user($0) } ?? .common }

        /// The share whose newer file has this name.
        init?(file: String) {
            guard file.hasPrefix(Self.prefix), file.hasSuffix(Self.suffix) else { return nil }
            let word = file.dropFirst(Self.prefix.count).dropLast(Self.suffix.count)
            if word == "network" {
                self = .common
            } else if let user = UInt32(word), word == "\(user)" {
                self = .user(user)
            } else {
                return nil
            }
        }

        static let prefix = "history-"
        private static let suffix = ".log"

        var file: String {
            switch self {
            case .common: "\(Self.prefix)network\(Self.suffix)"
            case .user(let user): "\(Self.prefix)\(user)\(Self.suffix)"
            }
        }
    }

    /// How much is kept.
    package struct Room {
        /// The bytes of each file: some two thousand events. A quiet connection makes some tens a day.
        var mostBytes = 1 << 20
        /// Users who have files. More than use a machine, unless somebody makes users by the thousand; then the one
        /// whose newest event is the oldest gives way, but never root. With all files full this comes to 128 MiB.
        var mostUsers = 64

        /// Where there is no state directory the files lie in memory.
        static let inMemory = Room(mostBytes: 1 << 18, mostUsers: 8)
    }

    private let state: SavedState
    private let room: Room
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()
    /// The shares that have files, the one written last at the end; without the files that were not needed yet.
    private var shares: OrderedDictionary<Share, LineFile?> = [:]
    private var latest: Int64 = 0

    /// The files as the last run left them.
    package init(_ state: SavedState, _ room: Room? = nil) {
        self.state = state
        self.room = room ?? (state.isOnDisk ? Room() : .inMemory)
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        for file in state.names(beginning: Share.prefix) {
            if let share = Share(file: file) { shares[share] = .some(nil) }
        }
        takeOver()
    }

    /// Appends a line.
    ///
    /// - Throws: what the file system says.
    package func append(_ line: Line) throws(SystemError) {
        var line = line
        latest = max(latest + 1, (line.entry.time?.milliseconds ?? 0) * 1000)
        line.order = latest
        guard let data = try? encoder.encode(line) else { return }
        let share = Share(line.owner)
        let file = try file(of: share)
        shares[share] = nil
        shares[share] = .some(file)
        try file.append(Array(data))
    }

    /// All that a reader may see who may see the connections of `owner`, or of all users where there is none.
    package func reading(for owner: UInt32?) throws(SystemError) -> HistoryMerge {
        var readers: [LineReader] = []
        for share in shares.keys where owner == nil || share == .common || share == .user(owner ?? 0) {
            readers.append(try file(of: share).reader())
        }
        return HistoryMerge(readers)
    }

    private func file(of share: Share) throws(SystemError) -> LineFile {
        if let file = shares[share] ?? nil { return file }
        if shares[share] == nil { makeRoom() }
        let file = try LineFile(share.file, in: state, limit: room.mostBytes)
        shares[share] = .some(file)
        return file
    }

    private func makeRoom() {
        let users = shares.keys.filter { $0 != .common && $0 != .user(0) }
        guard users.count >= room.mostUsers, let oldest = users.first else { return }
        shares[oldest] = nil
        state.remove(oldest.file)
        state.remove("\(oldest.file).1")
    }

    // MARK: - Of earlier versions

    /// The one pair of files that an earlier version had for all. Its lines are put where they belong now, and it is
    /// removed.
    private func takeOver() {
        for file in ["history.jsonl.1", "history.jsonl"] {
            // It never grew beyond this.
            guard let bytes = try? state.read(file, atMost: 1 << 20) else { continue }
            for text in bytes.split(separator: UInt8(ascii: "\n")) {
                guard var line = try? decoder.decode(Line.self, from: Data(text)), line.entry.time != nil else {
                    continue
                }
                // It wrote the owner beside the event alone.
                line.entry.event?.connection.owner = line.owner.map { Int($0) }
                try? append(line)
            }
            state.remove(file)
        }
    }
}

/// Lines of several files in the order in which they were written.
@AgentQueue
package final class HistoryMerge {
    /// What comes next.
    package enum Step {
        case line(HistoryFiles.Line)
        /// One that is not as it was written.
        case damaged
        case end
    }

    private let decoder = JSONDecoder()
    private var waiting: [LineReader]
    private var heads: [(line: HistoryFiles.Line, reader: LineReader)] = []

    fileprivate init(_ readers: [LineReader]) { waiting = readers }

    /// The next line. A damaged one is told of, and may be told of before older lines.
    package func next() -> Step {
        while let reader = waiting.popLast() {
            switch reader.next() {
            case .whole(let text)?:
                if let line = try? decoder.decode(HistoryFiles.Line.self, from: Data(text)) {
                    heads.append((line, reader))
                    continue
                }
                fallthrough
            case .damaged?:
                waiting.append(reader)
                return .damaged
            case nil: continue
            }
        }
        guard let next = heads.indices.min(by: { order(of: heads[$0]) < order(of: heads[$1]) }) else { return .end }
        let (line, reader) = heads.remove(at: next)
        waiting.append(reader)
        return .line(line)
    }

    private func order(of head: (line: HistoryFiles.Line, reader: LineReader)) -> Int64 { head.line.order ?? 0 }
}
