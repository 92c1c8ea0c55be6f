// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnectionIO
internal import DialtoneNetworkPath
package import DialtonePlatform
internal import DialtoneSystemd
package import Logging

/// The service manager's store, as the place where flows outlive this process. It costs a message to the manager when
/// one is connected and one when it is closed, and nothing in between.
@AgentQueue
package final class DescriptorStore {
    /// Talks to the service manager.
    package struct Manager {
        /// Stores descriptors under one name.
        package var store: @AgentQueue ([CInt], String) throws(SystemError) -> Void
        package var remove: @AgentQueue (String) throws(SystemError) -> Void

        /// The one that started this process.
        package static let system = Manager(
            store: { (descriptors, name) throws(SystemError) in _ = try ServiceManager.store(descriptors, as: name) },
            remove: { (name) throws(SystemError) in _ = try ServiceManager.removeStored(name) })
    }

    private let manager: Manager
    private let limit: Int
    private let logger: Logger
    private var places: StorePlaces
    /// How fast each user stores what is kept.
    private var paces: [UInt32: TokenBucket] = [:]
    private var newest: UInt64 = 0
    /// How many descriptors each number has.
    private var sizes: [UInt64: Int] = [:]
    private var hasComplained = false
    /// The users who were told of in the log: once each, and no more than ``mostUsersTold``.
    private var usersTold: Set<UInt32> = []
    /// More users than a machine with people has; a program with many identities fills no log.
    private static let mostUsersTold = 64
    /// What an earlier process left and nobody has claimed yet, by number.
    private var left: [UInt64: [CInt]]

    /// A store.
    ///
    /// - Parameters:
    ///   - limit: how many descriptors it takes, ``reserved`` included. It drops those above without a word.
    ///   - left: what an earlier process left, by number.
    package init(_ manager: Manager, limit: Int, left: [UInt64: [CInt]] = [:], _ logger: Logger) {
        self.manager = manager
        self.limit = limit - Self.reserved
        let count = left.values.reduce(0) { $0 + $1.count }
        places = StorePlaces(limit: limit - Self.reserved, left: count)
        sizes = left.mapValues(\.count)
        self.left = left
        self.logger = logger
        newest = left.keys.max() ?? 0
    }

    /// Each is two messages to the service manager, whose queue takes 512 (`net.unix.max_dgram_qlen`) and which all of
    /// the system waits for; the daemon waits while it is full. A user's connections and their clients all return at
    /// once (``NetworkBudget``: 512 dials), and from then on as fast as dials may follow one another, and be taken.
    private static let burst = 1024
    private static let refill = Duration.milliseconds(25)

    /// How many of its places the state takes, the note of what is under way, and the counts of flows with TLS.
    static let reserved = 4

    /// What a descriptor is stored as. Short: the manager writes the names of all into one variable of the environment,
    /// which has room for 128 KiB (`MAX_ARG_STRLEN` in include/uapi/linux/binfmts.h).
    package static func name(of number: UInt64) -> String { "f\(number)" }

    /// The number in a name; `nil` for one that is not of a flow.
    package nonisolated static func number(of name: String) -> UInt64? {
        guard name.hasPrefix("f"), let number = UInt64(name.dropFirst()), number <= FieldReader.largestCount else {
            return nil
        }
        return number
    }

    /// The part of the store where a holder keeps something.
    package func part(of holder: StorePlaces.Holder) -> StorePart { StorePart(self, holder) }

    /// What an earlier process left under a number, once. The place is the holder's from now on.
    fileprivate func claim(_ number: UInt64, for holder: StorePlaces.Holder) -> [CInt] {
        guard let descriptors = left.removeValue(forKey: number) else { return [] }
        places.claim(descriptors.count, for: holder)
        return descriptors
    }

    /// Ends what nobody has claimed. A client that has such a flow reads what has come on it, and then its end: nobody
    /// watches over it any more.
    ///
    /// - Returns: how many that were.
    package func closeUnclaimed() -> Int {
        defer { left = [:] }
        for (number, descriptors) in left {
            UnclaimedFlow.end(descriptors)
            discard(number, of: nil)
        }
        return left.count
    }

    fileprivate func keep(_ descriptors: [CInt], for holder: StorePlaces.Holder) -> UInt64? {
        guard hasPace(holder, now: BootClock.now()), places.take(descriptors.count, for: holder) else {
            tellOfNoPlace(for: holder)
            return nil
        }
        do throws(SystemError) {
            try manager.store(descriptors, Self.name(of: newest + 1))
        } catch {
            places.giveBack(descriptors.count, for: holder)
            complain("\(error)")
            return nil
        }
        newest += 1
        sizes[newest] = descriptors.count
        return newest
    }

    /// Whether a holder may store something now. Root's word is no flood.
    private func hasPace(_ holder: StorePlaces.Holder, now: Duration) -> Bool {
        guard case .user(let user) = holder else { return true }
        if paces.count > Self.mostUsersTold { paces = paces.filter { !$0.value.isFull(now: now) } }
        return paces[user, default: TokenBucket(burst: Self.burst, refill: Self.refill, now: now)].take(now: now) == nil
    }

    fileprivate func discard(_ number: UInt64, of holder: StorePlaces.Holder?) {
        // Of a number that the manager did not hand on there is nothing here, and no place is taken.
        guard let size = sizes.removeValue(forKey: number) else { return }
        places.giveBack(size, for: holder)
        do throws(SystemError) {
            try manager.remove(Self.name(of: number))
        } catch {
            complain("\(error)")
        }
    }

    private func complain(_ problem: String) {
        guard !hasComplained else { return }
        hasComplained = true
        logger.warning(
            "not every flow will outlive this process", metadata: ["reason": "\(problem)", "limit": "\(limit)"])
    }

    /// Says once for each user that there is no place; the connection says it to its owner.
    private func tellOfNoPlace(for holder: StorePlaces.Holder) {
        guard case .user(let user) = holder else {
            return complain("the service manager's store is full (FileDescriptorStoreMax=)")
        }
        guard usersTold.count < Self.mostUsersTold, usersTold.insert(user).inserted else { return }
        logger.warning(
            "a user's flows have no more places in the service manager's store: further ones end with this process",
            metadata: ["user": "\(user)", "limit": "\(limit)"])
    }
}

/// The part of the store where one connection keeps something. Its places count as its holder's.
@AgentQueue
package final class StorePart: FlowStore {
    private let store: DescriptorStore
    private let holder: StorePlaces.Holder

    fileprivate init(_ store: DescriptorStore, _ holder: StorePlaces.Holder) {
        self.store = store
        self.holder = holder
    }

    /// What an earlier process left under a number, once.
    package func claim(_ number: UInt64) -> [CInt] { store.claim(number, for: holder) }

    package func keep(_ descriptors: [CInt]) -> UInt64? { store.keep(descriptors, for: holder) }

    package func discard(_ number: UInt64) { store.discard(number, of: holder) }
}
