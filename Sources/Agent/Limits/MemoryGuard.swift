// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc
internal import Logging

/// Why there is no memory for new work, or no descriptor.
struct ResourceShortage: Error, Hashable {
    /// For a person: which limit, how much of it is in use, or that the kernel says so.
    let reason: String
}

/// Refuses new work before the kernel kills the process for its memory, or has no descriptor for it: what there is goes
/// on, and closing some makes room. It costs nothing while nothing new comes.
@AgentQueue
final class MemoryGuard {
    /// Readings of the kernel's figures are this fresh at least: between two, what was admitted counts by its estimate.
    private static let freshness = Duration.milliseconds(10)
    /// The heap's free pages are given back before somebody is refused, so often at most: it takes milliseconds. Root
    /// need not wait for what others had given back lately.
    private static func trimPause(forRoot: Bool) -> Duration { forRoot ? .milliseconds(100) : .seconds(1) }
    /// The least time between two lines of the log.
    private static let logPause = Duration.seconds(60)

    /// Gives the nearest limit, as ``MemoryLimits/nearest(leaving:needed:)`` does.
    typealias Reading = @AgentQueue (_ parts: UInt64, _ needed: Int64) -> MemoryUse?

    private let read: Reading
    private let now: @AgentQueue () -> Duration
    private let logger: Logger
    private var budget = MemoryBudget()
    private var latest: [UInt64: (use: MemoryUse?, needed: Int64, at: Duration)] = [:]
    private var pressureEnd = Duration.zero
    private var nextLine = Duration.zero
    /// For root, and for others.
    private var nextTrim: [Bool: Duration] = [:]
    private var pressure: MemoryPressure?
    private let trim: @AgentQueue () -> Void
    private let descriptors: DescriptorRoom
    private var clients: @AgentQueue () -> Int = { 0 }

    /// A guard over figures of the test's.
    init(
        _ logger: Logger, now: @escaping @AgentQueue () -> Duration = { BootClock.now() },
        trim: @escaping @AgentQueue () -> Void = { ResidentMemory.trim() }, descriptors: DescriptorRoom? = nil,
        _ read: @escaping Reading
    ) {
        self.descriptors = descriptors ?? DescriptorRoom()
        self.logger = logger
        self.now = now
        self.trim = trim
        self.read = read
    }

    /// The guard of this process, by its limits.
    convenience init(of limits: MemoryLimits, _ logger: Logger) {
        self.init(logger) { limits.nearest(leaving: $0, needed: $1) }
        let source = MemoryPressure.source(group: limits.ownGroup) { getenv($0).map { String(cString: $0) } }
        guard let source else { return }
        do throws(SystemError) {
            pressure = try MemoryPressure(source) { [weak self] in self?.pressed() }
        } catch {
            logger.debug("the kernel does not tell of memory pressure here", metadata: ["error": "\(error)"])
        }
    }

    /// There is a connection more, that a client described in so many bytes.
    func connectionCame(given: Int) { budget.connectionCame(given: given) }

    /// There is one less, with which a client had left so many.
    func connectionWent(given: Int, left: Int) {
        budget.textChanged(from: left, to: 0)
        budget.connectionWent(given: given)
    }

    /// What a client leaves with a connection has so many bytes, after so many.
    func textChanged(from old: Int, to new: Int) { budget.textChanged(from: old, to: new) }

    /// Has each client count for what it may come to.
    ///
    /// - Parameter count: how many there are.
    func countClients(under limits: VarlinkServer.Limits, _ count: @escaping @AgentQueue () -> Int) {
        budget.client = UInt64(clamping: limits.clientBytes)
        budget.held = (UInt64(clamping: limits.messageBytes), UInt64(clamping: limits.heldBytes))
        clients = count
    }

    /// The kernel says that memory is short: some is given back, and nothing new is begun for a while.
    func pressed() {
        trim()
        let isNew = now() >= pressureEnd
        pressureEnd = now() + MemoryPressure.span * 2
        if isNew { log("the kernel says that memory is short") }
    }

    /// Admits new work of a user, or says why not.
    func admit(_ work: MemoryBudget.Work, for user: UInt32) throws(ResourceShortage) {
        let isRoot = user == 0 || user == geteuid()
        let instant = now()
        budget.clients = clients()
        switch work {
        // Part of what goes on.
        case .text, .answer: break
        case .client, .subscription, .connection:
            if !isRoot, instant < pressureEnd { throw shortage("the kernel says that memory is short") }
            if let reason = descriptors.shortage(forRoot: isRoot) { throw shortage(reason) }
        }
        guard var use = use(for: work, isRoot, at: instant) else { return }
        if budget.admits(work, forRoot: isRoot, use) { return }
        // What was closed may still lie in the heap.
        if isRootsWayIn(work, isRoot) || instant >= nextTrim[isRoot, default: .zero] {
            nextTrim[isRoot] = instant + Self.trimPause(forRoot: isRoot)
            trim()
            latest = [:]
            use = self.use(for: work, isRoot, at: instant) ?? use
            if budget.admits(work, forRoot: isRoot, use) { return }
        }
        let about = budget.about(use.growth)
        throw shortage(
            "\(use.used >> 20) MiB are in use and \(about >> 20) about to be, of \(use.limit >> 20) MiB of "
                + "\(use.name), and the rest is kept for what there is")
    }

    /// Admits new work of a user, or gives the answer of `org.dialtone.Connections` that says why not.
    func admitOrFail(_ work: MemoryBudget.Work, for user: UInt32) throws(VarlinkFailure) {
        do throws(ResourceShortage) {
            try admit(work, for: user)
        } catch {
            throw VarlinkFailure(ConnectionsAPI.OutOfResources(reason: error.reason))
        }
    }

    /// Whether root comes, for whom others give way as long as that helps.
    private func isRootsWayIn(_ work: MemoryBudget.Work, _ isRoot: Bool) -> Bool {
        if case .client = work { isRoot } else { false }
    }

    private func use(for work: MemoryBudget.Work, _ isRoot: Bool, at instant: Duration) -> MemoryUse? {
        let parts = MemoryBudget.parts(work, forRoot: isRoot)
        let needed = budget.enough(for: work)
        if let latest = latest[parts], instant < latest.at + Self.freshness {
            // One that was read for less may count what can be taken back.
            let room = latest.use?.room(leaving: parts) ?? .max
            if room >= needed || room < latest.needed { return latest.use }
        }
        let use = read(parts, needed)
        // The others are of before what this one shows.
        latest = [parts: (use, needed, instant)]
        budget.hasRead()
        return use
    }

    private func shortage(_ reason: String) -> ResourceShortage {
        log(reason)
        return ResourceShortage(reason: reason)
    }

    private func log(_ reason: String) {
        guard now() >= nextLine else { return }
        nextLine = now() + Self.logPause
        logger.warning("nothing new is begun for want of resources", metadata: ["reason": "\(reason)"])
    }
}
