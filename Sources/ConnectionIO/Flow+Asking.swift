// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import Glibc

// What is asked of a flow's socket. A client that has it can make the kernel keep every such call waiting, so those on
// one that a client has or had are made on a thread of its user's.

extension Flow {
    /// Asks the socket; `otherwise` for a flow that is closed, and where its client keeps the socket busy.
    func ask<T: Sendable>(_ otherwise: T, _ call: @escaping @Sendable (CInt) -> T) -> T {
        guard let number else { return otherwise }
        guard let sharer else { return call(number) }
        return UserThreads.answer(for: sharer, otherwise: otherwise) { call(number) }
    }

    /// Asks the TCP socket, which no client has where there is TLS.
    func askSocket<T: Sendable>(_ otherwise: T, _ call: @escaping @Sendable (CInt) -> T) -> T {
        if secured == nil { return ask(otherwise, call) }
        return socketNumber.map(call) ?? otherwise
    }

    /// How many bytes wait for the client (`SIOCINQ`); 0 for a flow that is closed.
    var unreadBytes: Int { knownUnread ?? 0 }

    /// Whether something may wait for the client: also where the socket says nothing. What is there must not be lost
    /// for that.
    ///
    /// `dialtone-tls` is asked about first: what it passes on in between is there then.
    var mayHaveUnread: Bool { isBehind || knownUnread != 0 }

    /// The same; `nil` where the socket says nothing.
    var knownUnread: Int? {
        guard number != nil else { return 0 }
        return ask(nil) { $0.unreadBytes ?? 0 }
    }

    /// When the remote last acknowledged something, a keepalive's probe included, on ``BootClock``; `nil` where that
    /// cannot be told: each segment acknowledges, also one with data that left the remote before it heard anything.
    ///
    /// The kernel counts its age without the time asleep, so right after a resume the instant is too late by the sleep.
    var lastAcknowledgement: Duration? { lastAcknowledgement(withData: false) }

    /// The same, where `withData` is true also of a segment with data.
    func lastAcknowledgement(withData: Bool) -> Duration? {
        guard let information else { return nil }
        let age = Duration.milliseconds(Int64(information.tcpi_last_ack_recv))
        let sinceData = Duration.milliseconds(Int64(information.tcpi_last_data_recv))
        if !withData, sinceData <= age + Self.acknowledgementGranularity { return nil }
        return BootClock.now() - age
    }

    /// When anything last came from the remote, data or an acknowledgement, on ``BootClock``. The kernel does not count
    /// a segment with data as an acknowledgement if it acknowledges nothing new.
    var lastHeard: Duration? {
        information.map {
            BootClock.now() - .milliseconds(Int64(min($0.tcpi_last_ack_recv, $0.tcpi_last_data_recv)))
        }
    }

    /// What the kernel says of a flow that is connected.
    var information: tcp_info? {
        guard isConnected else { return nil }
        return askSocket(nil) { number in
            var information = tcp_info()
            var length = socklen_t(MemoryLayout<tcp_info>.size)
            guard getsockopt(number, CInt(IPPROTO_TCP), TCP_INFO, &information, &length) == 0 else { return nil }
            return information
        }
    }

    /// How far the stream is in both directions; `nil` where nobody counts.
    var progress: Progress? {
        if let secured { return progress(of: secured) }
        // Where nothing more comes, what is left says it all.
        if hasEnded { return knownUnread.map { Progress(read: 0 &- UInt64($0), written: 0) } }
        return ask(nil) { Progress(ofTCP: $0) }
    }

    /// The counts and what lies in the pair are asked for one after the other, until none has changed in between and
    /// none is ahead of what is done, as a reader of a sequence lock does: bytes wake this process before they are
    /// counted as delivered. What keeps that from being done is a processor that others have, so each wait is longer.
    private func progress(of secured: SecuredStream) -> Progress? {
        var progress: Progress?
        for attempt in 0..<Progress.mostTries {
            guard let counts = secured.counts,
                let lying = ask(nil, { number in (number.unreadBytes ?? 0, Self.isUndelivered(number)) })
                    as (Int, Bool)?,
                let present = secured.counts
            else { return nil }
            guard present == counts else { continue }
            // Once it has ended, nothing is written that counts.
            let written = hasEnded ? 0 : counts.taken &+ (lying.1 ? 1 : 0)
            progress = Progress(
                read: counts.delivered &- UInt64(lying.0), written: written, isAhead: counts.isAhead)
            // One that is no more puts nothing right.
            guard counts.isAhead, !secured.hasTakenAll else { break }
            usleep(Progress.shortestWait << attempt)
        }
        return progress
    }

    /// Whether something that was written has not been acknowledged or, in a pair of Unix sockets, taken (`SIOCOUTQ`).
    nonisolated static func isUndelivered(_ number: CInt) -> Bool {
        var count: CInt = 0
        return ioctl(number, UInt(TIOCOUTQ), &count) != 0 || count != 0
    }

    /// Changes what of the socket may change: the keepalive, the user timeout, how its packets are marked.
    func configure(_ options: SocketOptions) throws(SystemError) {
        self.options = options
        guard socketNumber != nil else { return }
        let family = remote.address.family
        let busy = Result<Void, SystemError>.failure(
            SystemError("setting up a socket that its client keeps busy", code: EBUSY))
        try askSocket(busy) { number in
            Result { () throws(SystemError) in try options.apply(to: number, of: family) }
        }.get()
    }

    /// Whether a close resets (with zero seconds to linger, socket(7)); otherwise it says the end and does not wait.
    nonisolated static func setLinger(of number: CInt, _ resets: Bool) {
        var linger = linger(l_onoff: resets ? 1 : 0, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
    }
}
