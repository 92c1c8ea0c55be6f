// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneProcesses

/// The processes that matter to one connection: by the numbers by which the connection knows them, and with a
/// descriptor of each in the store for the next process of the agent.
@AgentQueue
final class ClientProcesses {
    private struct Entry {
        let handle: ProcessHandle
        /// Whether the agent launched it: then its end is told with how it ended, and not by this one.
        var isLaunched: Bool
        /// Under which number the store has a descriptor of it.
        var stored: UInt64?
        /// Whether the store had no place for one; it is asked again when the process comes again.
        var isRefused = false
    }

    private let store: StorePart?
    private var entries: [KnownProcess: Entry] = [:]
    private var lastNumber: UInt64 = 0
    /// What the store need not have any more, once that is written down.
    private var obsolete: [UInt64] = []
    /// Called when a process has ended that the agent did not launch.
    var ended: @AgentQueue (KnownProcess) -> Void = { _ in }

    init(_ store: StorePart?) { self.store = store }

    /// The handle of a process; `nil` where it has ended, or is not known.
    subscript(process: KnownProcess) -> ProcessHandle? { entries[process]?.handle }

    /// The number of a process, which is watched from now on.
    func number(of handle: ProcessHandle, isLaunched: Bool = false) -> KnownProcess {
        if let (known, entry) = entries.first(where: { $0.value.handle.isSame(as: handle) }) {
            if handle.isProven, !entry.handle.isProven {
                // The launcher believes this one.
                forget(known)
                enter(handle, as: known, isLaunched: entry.isLaunched || isLaunched)
            }
            if isLaunched { entries[known]?.isLaunched = true }
            entries[known]?.isRefused = false
            return known
        }
        lastNumber += 1
        let process = KnownProcess(lastNumber)
        enter(handle, as: process, isLaunched: isLaunched)
        return process
    }

    /// The process of a number of the kernel's, if it is one of these and lives.
    func known(numbered number: Int32) -> KnownProcess? {
        entries.first { $0.value.handle.number == number && $0.value.handle.isAlive }?.key
    }

    private func enter(_ handle: ProcessHandle, as process: KnownProcess, isLaunched: Bool, stored: UInt64? = nil) {
        entries[process] = Entry(handle: handle, isLaunched: isLaunched, stored: stored)
        try? handle.onEnd { [weak self] in self?.tellEnd(of: process) }
    }

    /// Tells what has ended, and nobody heard of it yet.
    func tellEnds() {
        for (process, entry) in entries where !entry.handle.isAlive { tellEnd(of: process) }
    }

    private func tellEnd(of process: KnownProcess) {
        guard let entry = entries[process], !entry.isLaunched else { return }
        forget(process)
        ended(process)
    }

    /// A process has ended, and that was told.
    func forget(_ process: KnownProcess) {
        if let stored = entries.removeValue(forKey: process)?.stored { obsolete.append(stored) }
    }

    // MARK: - Beyond this process of the agent

    /// Goes on with a process that an earlier process of the agent knew.
    ///
    /// - Returns: whether there is anything left of it.
    func resume(_ kept: SavedProcess) -> Bool {
        lastNumber = max(lastNumber, kept.process.number)
        guard let number = store?.claim(kept.stored).first else { return false }
        let descriptor = OwnedDescriptor(number, sharedWith: OwnedDescriptor.somebody)
        guard let handle = try? ProcessHandle.passed(descriptor, launchedAs: kept.launchedAs) else {
            store?.discard(kept.stored)
            return false
        }
        // It waits for an answer of the process before, which nobody gives.
        handle.hangUp()
        enter(handle, as: kept.process, isLaunched: kept.launchedAs != nil, stored: kept.stored)
        return true
    }

    /// Has the store have a descriptor of each of `processes`, and forgets all others.
    func keep(_ processes: Set<KnownProcess>) {
        for process in entries.keys where !processes.contains(process) { forget(process) }
        guard let store else { return }
        for (process, entry) in entries where entry.stored == nil && !entry.isRefused {
            var stored: UInt64?
            if let copy = try? entry.handle.duplicateDescriptor() { stored = store.keep([copy.number]) }
            entries[process]?.stored = stored
            entries[process]?.isRefused = stored == nil
        }
    }

    /// Those that the store has.
    var kept: [SavedProcess] {
        entries.compactMap { process, entry in
            entry.stored.map {
                SavedProcess(process: process, stored: $0, launchedAs: entry.isLaunched ? entry.handle.number : nil)
            }
        }.sorted { $0.process.number < $1.process.number }
    }

    /// What was kept is written down: nothing refers any more to what it left out.
    func keptIsWritten() {
        for number in obsolete { store?.discard(number) }
        obsolete = []
    }

    /// None of them is needed any more.
    func close() {
        keep([])
        keptIsWritten()
    }
}
