// SPDX-License-Identifier: Apache-2.0

@testable import DialtoneConnection

/// Sockets as the kernel has them, and the processes that read them: the truth, in its own words.
struct ClientWorld: ConnectionFacts {
    /// One TCP socket of the agent's.
    struct Socket {
        /// How many bytes the server has sent, and how many of them somebody has read.
        var received = 0
        var read = 0
        /// How many times somebody wrote.
        var writes = 0
        /// How far it was when somebody was last given it; `nil` from when it came back.
        var handed: (read: Int, writes: Int)?
        /// Who was given it and has not given it back.
        var owner: Reader?
        /// Whether the descriptor got lost on its way to the owner, who may take it again.
        var isLost = false
        /// The last owner, if that went in the middle of something.
        var tornBy: KnownProcess?
        /// Whether the owner has shown that it has it, or was given it twice.
        var hasShown = false
        /// Whether a program ended in order that had it after its end: it has read what it wanted.
        var isGivenUp = false
        /// Whether only an agent that was killed knew how far it was when its owner got it.
        var isForgotten = false
        /// Whether its server hung up.
        var hasEnded = false
        /// Whether it ended and waits for its reader.
        var isRetired = false
        /// Whether it is there after the agent was killed: the keys of TLS end with it.
        var survivesAgent: Bool
        /// Whether somebody is, or may be, logged in on it.
        var hasSession = false
        var isWatched = false
        /// Whether the agent has not heard of what came last.
        var isUnheard = false
        /// The bytes beyond which somebody wants to hear of more.
        var awaitedBeyond: Int?

        init(survivesAgent: Bool) { self.survivesAgent = survivesAgent }

        var isTorn: Bool { tornBy != nil }
        var unread: Int { received - read }
        var isTouched: Bool { handed.map { $0 != (read, writes) } ?? false }
    }

    struct Process {
        var isAlive = true
        /// Whether it is to become a program, and has not yet.
        var isBeginning = false
        /// Whether the agent has heard of its end.
        var isEndTold = false
        /// How a program ended.
        var end = ProgramEnd.unseen
        var isProgram = false
    }

    var sockets: [UInt64: Socket] = [:]
    var processes: [KnownProcess: Process] = [:]
    var isWatched = false
    /// The program that was launched last, to the agent's knowledge.
    var lastProgram: KnownProcess?
    private var lastProcess: UInt64 = 0

    /// Those that can do something.
    var alive: [KnownProcess] { processes { $0.isAlive && !$0.isBeginning } }

    /// In the order in which they began, so that everything follows from the seed.
    func processes(where isMeant: (Process) -> Bool) -> [KnownProcess] {
        processes.filter { isMeant($0.value) }.keys.sorted { $0.number < $1.number }
    }

    mutating func newProcess(isProgram: Bool = false) -> KnownProcess {
        lastProcess += 1
        let process = KnownProcess(lastProcess)
        processes[process] = Process(isProgram: isProgram)
        return process
    }

    func isAlive(_ process: KnownProcess) -> Bool { processes[process]?.isAlive ?? false }

    /// The sockets that a process was given.
    func sockets(of process: KnownProcess) -> [UInt64] {
        sockets.filter { $0.value.owner?.process == process }.keys.sorted()
    }

    /// The first of those that it can read and write.
    func openSocket(of process: KnownProcess) -> UInt64? {
        sockets(of: process).first { sockets[$0]?.isLost == false }
    }

    /// The attempt to launch a program that is under way.
    var launching: WakeAttempt.ID?
    /// The programs that run, or ran, of attempts that were under way when the agent was killed: it hears of one when
    /// it asks.
    var unheard: [WakeAttempt.ID: KnownProcess] = [:]

    /// Who has a socket, as far as the agent can know.
    func knownOwner(of epoch: UInt64) -> Reader? {
        let owner = sockets[epoch]?.owner
        return unheard.first { owner == .program($0.value) }.map { .launch($0.key) } ?? owner
    }

    /// Whether the program runs that the agent launched last.
    var hasProgram: Bool { lastProgram.map(isAlive) ?? false }

    /// Nobody has it any more.
    mutating func release(_ epoch: UInt64) {
        sockets[epoch]?.owner = nil
        sockets[epoch]?.isLost = false
        sockets[epoch]?.hasShown = false
    }

    /// Somebody reads all that has come on a socket.
    mutating func readAll(of epoch: UInt64) {
        guard sockets[epoch]?.isLost == false else { return }
        let received = sockets[epoch]?.received ?? 0
        sockets[epoch]?.read = received
    }

    // MARK: - What the connection asks

    func unreadBytes(on epoch: UInt64) -> Int { sockets[epoch]?.unread ?? 0 }

    func mayHaveUnread(_ epoch: UInt64) -> Bool { unreadBytes(on: epoch) > 0 }

    func touch(of epoch: UInt64) -> Touch {
        guard let socket = sockets[epoch], let handed = socket.handed else { return .unknown }
        return handed == (socket.read, socket.writes) ? .untouched : .touched
    }

    func presence(of process: KnownProcess) -> ClientPresence { isAlive(process) ? .alive : [] }

    func isWatched(by process: KnownProcess?) -> Bool { isWatched }
}
