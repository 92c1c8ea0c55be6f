// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtonePlatform
package import DialtoneVarlink
internal import OrderedCollections

/// The files of the history: a pair for the network and the agent itself, and two for each user, so that what one user
/// does pushes out nothing of another's, and wakes, of which there may be thousands in a night, nothing but wakes.
@AgentQueue
package final class HistoryFiles {
    /// What is kept apart of each user.
    package typealias Part = ConnectionsAPI.Dropped.Part

    /// What has a pair of files of its own.
    package struct Share: Hashable, Sendable {
        /// Whose it is; `nil` for what everybody may know.
        package let owner: UInt32?
        let part: Part

        /// Of the network and the agent itself.
        package static let common = Share(owner: nil, part: .network)

        package static func user(_ user: UInt32, _ part: Part) -> Share { Share(owner: user, part: part) }

        private init(owner: UInt32?, part: Part) { (self.owner, self.part) = (owner, part) }

        /// The share whose newer file has this name.
        init?(file: String) {
            guard file.hasPrefix(Self.prefix), file.hasSuffix(Self.suffix) else { return nil }
            var word = file.dropFirst(Self.prefix.count).dropLast(Self.suffix.count)
            if word == Self.network {
                self = .common
                return
            }
            let part = word.hasSuffix(Self.wakes) ? Part.wakes : .connections
            if part == .wakes { word = word.dropLast(Self.wakes.count) }
            guard let user = UInt32(word), word == "\(user)" else { return nil }
            self = .user(user, part)
        }

        static let prefix = "history-"
        private static let suffix = ".log"
        private static let network = "network"
        private static let wakes = "-wakes"

        var file: String {
            Self.prefix + (owner.map { "\($0)" } ?? Self.network) + (part == .wakes ? Self.wakes : "") + Self.suffix
        }
    }

    /// A line of a file: what a client gets, and who may.
    package struct Line: VarlinkObject {
        /// Whose connection it is; `nil` for what everybody may know.
        package var owner: UInt32?
        /// By what lines of different files are put in order: microseconds since 1970, raised where need be so that no
        /// two of a run are the same.
        package var order: Int64?
        /// Its number within its share, from 1 on: that of the first line left tells how many are gone.
        var number: Int?
        package var entry: ConnectionsAPI.History.Reply

        init(owner: UInt32?, order: Int64, number: Int, entry: ConnectionsAPI.History.Reply) {
            (self.owner, self.order, self.number, self.entry) = (owner, order, number, entry)
        }

        package init?(from fields: inout some VarlinkFieldReader) {
            guard let entry: ConnectionsAPI.History.Reply = fields.object("entry") else { return nil }
            if let owner = fields.integer("owner") {
                // Not taken for absent: then everybody might see it.
                guard let user = UInt32(exactly: owner) else { return nil }
                self.owner = user
            }
            order = fields.integer("order").map { Int64($0) }
            number = fields.integer("number")
            self.entry = entry
        }

        package func write(to fields: inout some VarlinkFieldWriter) {
            if let owner { fields.put("owner", Int(owner)) }
            if let order { fields.put("order", Int(order)) }
            if let number { fields.put("number", number) }
            fields.put("entry", entry)
        }

        /// The line of a file that is this: numbered fields, in less than half of the room that JSON takes.
        var bytes: [UInt8] { StuffedOctets.stuffed(KeptFieldWriter.bytes(of: self)) }

        /// What a line of a file is; `nil` where no version wrote it.
        package init?(bytes: ArraySlice<UInt8>) {
            // An earlier version wrote JSON. No field begins with this octet: it would be of wire type 3.
            if bytes.first == UInt8(ascii: "{") {
                self.init(json: bytes)
                return
            }
            guard let fields = StuffedOctets.plain(bytes), let line: Self = try? KeptFieldReader.object(fields) else {
                return nil
            }
            self = line
        }
    }

    /// How much is kept.
    package struct Room {
        /// The bytes of each file: some three thousand events. A quiet connection makes some tens a day.
        var mostBytes = 1 << 20
        /// Users who have files. More than use a machine, unless somebody makes users by the thousand; then the one
        /// whose newest event is the oldest gives way, but never root. With all files full this comes to 256 MiB.
        var mostUsers = 64

        /// Where there is no state directory the files lie in memory.
        static let inMemory = Room(mostBytes: 1 << 18, mostUsers: 8)
    }

    private struct Opened {
        let file: LineFile
        /// The number of its newest line; `nil` until the first one of this run is appended.
        var latest: Int?
    }

    private let state: SavedState
    private let room: Room
    /// The shares that have files, the one written last at the end; without the files that were not needed yet.
    private var shares: OrderedDictionary<Share, Opened?> = [:]
    private var latest: Int64 = 0

    /// The files as the last run left them.
    package init(_ state: SavedState, _ room: Room? = nil) {
        self.state = state
        self.room = room ?? (state.isOnDisk ? Room() : .inMemory)
        for file in state.names(beginning: Share.prefix) {
            if let share = Share(file: file) { shares[share] = .some(nil) }
        }
    }

    /// Appends what happened to a share.
    ///
    /// - Throws: what the file system says.
    package func append(_ entry: ConnectionsAPI.History.Reply, to share: Share) throws(SystemError) {
        var opened = try opened(share)
        latest = max(latest + 1, (entry.time?.milliseconds ?? 0) * 1000)
        let last = opened.latest ?? newestNumber(in: opened.file)
        // A damaged file says any number.
        let number = last < Int.max ? last + 1 : 1
        opened.latest = number
        try opened.file.append(Line(owner: share.owner, order: latest, number: number, entry: entry).bytes)
        shares[share] = nil
        shares[share] = .some(opened)
    }

    /// All that a reader may see who may see the connections of `owner`, or of all users where there is none.
    package func reading(for owner: UInt32?) throws(SystemError) -> HistoryMerge {
        var readers: [(Share, LineReader)] = []
        for share in shares.keys where owner == nil || share.owner == nil || share.owner == owner {
            readers.append((share, try opened(share).file.reader()))
        }
        return HistoryMerge(readers)
    }

    private func opened(_ share: Share) throws(SystemError) -> Opened {
        if let opened = shares[share] ?? nil { return opened }
        if let owner = share.owner { makeRoom(for: owner) }
        let file = try LineFile(share.file, in: state, limit: room.mostBytes)
        let opened = Opened(file: file)
        shares[share] = .some(opened)
        return opened
    }

    private func newestNumber(in file: LineFile) -> Int {
        file.newest.flatMap { Line(bytes: $0) }?.number ?? 0
    }

    private func makeRoom(for owner: UInt32) {
        // The one whose newest line is the oldest comes last.
        var users: OrderedSet<UInt32> = []
        for share in shares.keys.reversed() {
            if let user = share.owner, user != 0 { users.append(user) }
        }
        guard owner != 0, !users.contains(owner), users.count >= room.mostUsers, let oldest = users.last else { return }
        for share in shares.keys.filter({ $0.owner == oldest }) {
            shares[share] = nil
            state.remove(share.file)
            state.remove("\(share.file).1")
        }
    }
}
