// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
package import DialtoneSystemd
package import Logging

/// What the service manager gave this process at the start, by descriptor, for its receiver to close.
package struct Inheritance: Sendable {
    /// Listening sockets for clients.
    package var listeners: [CInt] = []
    /// The two files of the state.
    package var state: [CInt] = []
    /// The note of what the process before was at work on.
    package var box: CInt?
    /// Flows and what belongs to them, by number.
    package var stored: [UInt64: [CInt]] = [:]
    /// How far flows with TLS are.
    package var counts: CInt?

    /// Under what the files of the state are stored.
    static let stateName = "state"
    /// Under what the note is.
    static let boxName = "box"
    /// Under what the counts of flows with TLS are.
    static let countsName = "counts"

    /// Takes what was passed. What has another name is closed.
    package init(_ passed: consuming PassedDescriptors) throws(SystemError) {
        var passed = passed
        while let socket = try passed.takeUnixListener(named: "varlink") { listeners.append(socket.release()) }
        while let file = passed.takeStored(named: Self.stateName) { state.append(file.release()) }
        box = passed.takeStored(named: Self.boxName)?.release()
        counts = passed.takeStored(named: Self.countsName)?.release()
        for name in Set(passed.names) {
            guard let number = DescriptorStore.number(of: name) else { continue }
            while let descriptor = passed.takeStored(named: name) {
                stored[number, default: []].append(descriptor.release())
            }
        }
    }

    /// Nothing.
    package init() {}
}

/// The agent's life beyond its process: flows lie in the service manager's store, and what is known of them in a file
/// in memory, which lies there too.
///
/// Whatever a subscriber is told is in the file before. So a subscriber that resumes with the next process finds each
/// number either never given out, or with the same event; and a connection is what it was said to be.
@AgentQueue
package final class Continuity {
    /// After so many processes in a row that began with a state and did not last, it is taken for the cause. One that
    /// is known to have ended by somebody's message, or a server's, says nothing of it and is not counted.
    static let mostUnsettledStarts = 5
    /// A process that ran for so long did not end because of the state that it began with: it has taken up every
    /// connection, and heard what each descriptor had to say first. No longer, because one that is killed in between
    /// for other reasons counts as well, and five of these must not cost the flows.
    private static let settlingTime = Duration.milliseconds(100)

    /// Where flows are kept.
    package let store: DescriptorStore
    /// All that is known, as records, for when the file is rewritten. They are drawn one by one.
    package var snapshot: (@AgentQueue () -> any Sequence<[AgentState.Entry]>)?

    /// What is counted of the network; `nil` where nothing was.
    package private(set) var network: SavedNetworkTotals?

    /// The counts that an earlier process left, once.
    private var inheritedCounts: CInt?
    private let file: StateFile
    private let manager: DescriptorStore.Manager
    private let logger: Logger
    private let crashes: CrashGuard?
    private var inherited: AgentState?
    /// How many processes did not last, this one included until it has.
    private var unsettledStarts = 1
    private var hasFailed = false

    /// Goes on with what was inherited.
    ///
    /// - Parameter crashes: knows how the process before ended.
    /// - Throws: where nothing can be kept.
    package init(
        _ inheritance: Inheritance, limit: Int, manager: DescriptorStore.Manager = .system,
        settlingAfter settlingTime: Duration = settlingTime, after crashes: CrashGuard? = nil, _ logger: Logger
    ) throws(SystemError) {
        self.logger = logger
        self.crashes = crashes
        self.manager = manager
        inheritedCounts = inheritance.counts
        store = DescriptorStore(manager, limit: limit, left: inheritance.stored, logger)
        if let (file, reading) = try Self.takeOver(inheritance.state, logger) {
            self.file = file
            inherited = reading.state
            network = reading.state.network
            unsettledStarts += reading.state.unsettledStarts
        } else {
            if !inheritance.state.isEmpty { try manager.remove(Inheritance.stateName) }
            file = try StateFile()
            try file.withFiles { (one, other) throws(SystemError) in
                try manager.store([one.number, other.number], Inheritance.stateName)
            }
        }
        // The start of the process before is counted, and its end had another cause.
        if crashes?.crash?.work != nil, unsettledStarts > 1 {
            unsettledStarts -= 1
        } else {
            try file.append(AgentState.record([.started]))
        }
        _ = Timers.shared.schedule(after: settlingTime) { [weak self] in
            self?.unsettledStarts = 0
            self?.write([.settled])
            self?.crashes?.hasSettled()
        }
    }

    private static func takeOver(
        _ files: [CInt], _ logger: Logger
    ) throws(SystemError) -> (file: StateFile, reading: StateLog.Reading)? {
        guard files.count == 2 else {
            for file in files { OwnedDescriptor(file).close() }
            return nil
        }
        guard let (file, reading) = try StateFile.takeOver(OwnedDescriptor(files[0]), OwnedDescriptor(files[1])) else {
            logger.error("what the process before knew cannot be read: everything begins anew")
            return nil
        }
        if reading.state.unsettledStarts >= mostUnsettledStarts {
            logger.error(
                "what the process before knew is given up: too many that began with it ended at once",
                metadata: ["starts": "\(reading.state.unsettledStarts)"])
            return nil
        }
        if reading.isDamaged || reading.state.unreadable > 0 {
            logger.warning(
                "some of what the process before knew cannot be read",
                metadata: ["entries": "\(reading.state.unreadable)", "damaged": "\(reading.isDamaged)"])
        }
        return (file, reading)
    }

    /// The counts of flows with TLS that an earlier process left, once.
    package func takeCounts() -> OwnedDescriptor? { inheritedCounts.take().map { OwnedDescriptor($0) } }

    /// Leaves the counts of flows with TLS for the next process.
    package func keepCounts(_ file: borrowing OwnedDescriptor) {
        do throws(SystemError) {
            try manager.store([file.number], Inheritance.countsName)
        } catch {
            // The next process does not know then what a client had read of its flow.
            logger.warning("how far flows with TLS are is not kept", metadata: ["error": "\(error)"])
        }
    }

    /// What an earlier process knew, once; `nil` where there was none.
    package func takeInherited() -> AgentState? { inherited.take() }

    /// Writes down what belongs together. To be called before anybody is told of it, and before the ``snapshot`` has
    /// it.
    package func write(_ entries: [AgentState.Entry]) {
        do throws(SystemError) {
            if file.isDueForCompaction, let snapshot {
                let starts = Array(repeating: AgentState.Entry.started, count: unsettledStarts)
                try rewrite(starts + (network.map { [.network($0)] } ?? []), snapshot())
            }
            try file.append(AgentState.record(entries))
            hasFailed = false
        } catch {
            if !hasFailed { logger.warning("what is known is not kept for now", metadata: ["error": "\(error)"]) }
            hasFailed = true
        }
    }

    /// Writes down what is counted of the network.
    package func write(_ network: SavedNetworkTotals) {
        self.network = network
        write([.network(network)])
    }

    /// Rewrites all records. Where there is no room for that, those that were appended stay.
    private func rewrite(
        _ first: [AgentState.Entry], _ rest: some Sequence<[AgentState.Entry]>
    ) throws(SystemError) {
        do throws(SystemError) {
            let all = [AnySequence([first]), AnySequence(rest)].joined()
            try file.compact(all.lazy.map(AgentState.record))
        } catch {
            if !file.isWhole { throw error }
        }
    }
}
