// SPDX-License-Identifier: Apache-2.0

@testable import DialtoneConnection

// What must hold of clients and programs after every step.

extension Simulation {
    /// Whoever was given a socket is its reader, and nobody else.
    func checkReaders() throws {
        let ownership = connection.ownership
        let standing = connection.line.standing
        try require(
            Set(ownership.endedEpochs).count == ownership.endedEpochs.count
                && ownership.endedEpochs.count <= Ownership.most, .oneReader, "\(ownership.endedEpochs)")
        for epoch in ownership.endedEpochs {
            try require(
                clients.sockets[epoch]?.isRetired == true, .closesWhatIsOpen, "\(epoch) is not there to be taken")
        }
        for epoch in clients.sockets.keys {
            guard let owner = clients.knownOwner(of: epoch) else { continue }
            let reader = connection.reader(of: epoch)
            if let process = reader?.process {
                let watched = connection.processes
                try require(watched.contains(process), .oneReader, "\(process) has \(epoch); watched: \(watched)")
            }
            // One that another flow took the place of is its client's, whom nobody asks about it any more.
            guard epoch == standing?.epoch || ownership.endedEpochs.contains(epoch) else { continue }
            try require(
                reader == owner || reader?.process != nil && reader?.process == owner.process, .oneReader,
                "\(epoch) is \(owner)'s, and said to be \(String(describing: reader))'s")
        }
    }

    /// What waits is woken for until somebody comes, or that is given up aloud.
    func checkWakes() throws {
        let wakes = connection.wakes
        guard wakes.settings.isTended || wakes.hasHadClient, !isClosed else { return }
        let standing = connection.line.standing
        let isHeld = standing.map { $0.ownership.holder == .daemon && $0.ownership.session != .opening } ?? false
        // Where the server refused an opening the client is called for that, and what it said is not looked for.
        let socket = standing.flatMap { clients.sockets[$0.epoch] }
        let waits = isHeld && socket.map { $0.isWatched && !$0.isUnheard && $0.unread > 0 } ?? false
        // What a server said that turned the agent away is there for who asks.
        let hasUnreadEnd = connection.ownership.isOwed
        guard waits || hasUnreadEnd else { return }
        // A program that reads what ended goes on to what came behind that, or its end has another one launched.
        let isRead = connection.ownership.readersOfEnded.contains { if case .program = $0 { true } else { false } }
        guard !isRead else { return }
        try require(
            wakes.standing != nil || wakes.review != nil, .wokenForWhatWaits,
            "\(waits ? "bytes on the flow" : "an ended flow") and nobody is woken: \(wakes)")
        guard let wake = wakes.standing, !wake.hasFailed else { return }
        try require(connection.nextDeadline != nil, .wokenForWhatWaits, "\(wake) stands without a deadline")
    }

    /// After a restart all is as it was, but for what was cut.
    ///
    /// - Parameter reader: who had the flow that stands still.
    func checkRestart(_ before: Clientele, reader: Reader?) throws {
        let after = connection.saved(knowing: Set(clients.processes.keys)).clientele
        // The program that has what it was for sees to it.
        let isSeenTo = connection.reader?.process != nil
        try require(
            after.wake?.number ?? 0 >= before.wake?.number ?? 0 || isSeenTo, .survivesRestart,
            "\(String(describing: before.wake)) became \(String(describing: after.wake))")
        try require(after.program == before.program, .survivesRestart, "\(before) became \(after)")
        if let reader {
            try require(connection.reader == reader, .survivesRestart, "\(reader) became \(after)")
        }
        for case .launch(let attempt)? in [connection.reader] + after.ended.map(\.reader) {
            try require(clients.launching == attempt, .survivesRestart, "\(attempt) has a flow for ever")
        }
        // What waited may be somebody's at once.
        // Of what was read nothing is left to be kept.
        for ended in before.ended where ended.reader?.process != nil && clients.mayHaveUnread(ended.epoch) {
            try require(after.ended.contains(ended), .survivesRestart, "\(ended) is missing in \(after)")
        }
    }
}
