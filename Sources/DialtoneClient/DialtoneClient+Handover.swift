// SPDX-License-Identifier: Apache-2.0

public import DialtoneAPI
public import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc

/// A socket that was taken.
public struct TakenFlow: ~Copyable, Sendable {
    /// The connection, as it was right after this socket was taken.
    ///
    /// What it says about a socket (`epoch`, `holder`, `session`, the addresses and so on) is about the connection's
    /// newest socket. That is this one, unless ``isOver`` is true: then it says nothing about this one.
    public let connection: ConnectionsAPI.Connection
    /// The number of this socket, to park it with.
    public let epoch: Int
    /// Whether this socket had ended when it was taken: what it received before is there to be read, and then the end.
    /// Nothing that is written to it arrives.
    public let isOver: Bool
    /// The socket. Its reads wait. `O_NONBLOCK` is shared with the daemon's copy: a client that sets it clears it
    /// before it parks the socket.
    public let descriptor: OwnedDescriptor

    /// Gives up the rest, for code that owns descriptors by number.
    public consuming func release() -> CInt { descriptor.release() }

    /// Makes reads wait again.
    fileprivate borrowing func clearNonblocking() {
        // Neither call fails on a descriptor that is open.
        let flags = fcntl(descriptor.number, F_GETFL)
        if flags >= 0, flags & O_NONBLOCK != 0 { _ = fcntl(descriptor.number, F_SETFL, flags & ~O_NONBLOCK) }
    }
}

extension DialtoneClient {
    /// Takes a connection's socket, to read and write it. The daemon keeps a copy until it is parked; a client that
    /// ends without parking loses no byte, unless it has read or written some before.
    ///
    /// - Parameters:
    ///   - owner: for root, whose connection of that name is meant; `nil` for root's own, or the only one.
    ///   - awaited: what is waited for; `nil` for nothing: where there is no socket, or another process has it, the
    ///     call fails.
    public func take(
        _ name: String, owner: Int? = nil, until awaited: ConnectionsAPI.Take.Parameters.Until? = nil
    ) async throws(DialtoneError) -> TakenFlow {
        let answer = try await callWithDescriptors(
            ConnectionsAPI.Take.self, .init(name: name, owner: owner, until: awaited), nil,
            timeout: awaited == nil ? Self.defaultTimeout : nil)
        guard let descriptor = await answer.descriptors.take(answer.reply.fileDescriptor) else {
            throw .interrupted(method: ConnectionsAPI.Take.name, .violated(.descriptorMissing))
        }
        return TakenFlow(
            connection: answer.reply.connection, epoch: answer.reply.epoch, isOver: answer.reply.isOver,
            descriptor: descriptor)
    }

    /// Gives a socket back, with a session on it, for the daemon to keep alive. The caller clears `O_NONBLOCK` before
    /// this if it has set it, and closes its own descriptor afterwards.
    ///
    /// - Parameters:
    ///   - owner: as for ``take(_:owner:until:)``.
    ///   - opening: what the daemon says on each new socket from now on to log in for the caller; empty for nothing,
    ///     `nil` for what it did before.
    ///   - answers: the messages of the server's that the daemon answers from now on while the socket is parked, so
    ///     that the caller sleeps on; likewise.
    public func park(
        _ name: String, owner: Int? = nil, epoch: Int, opening: [ConnectionsAPI.OpeningStep]? = nil,
        answers: [ConnectionsAPI.AnsweredMessage]? = nil
    ) async throws(DialtoneError) {
        _ = try await call(
            ConnectionsAPI.Park.self,
            .init(name: name, owner: owner, epoch: epoch, opening: opening, answers: answers))
    }

    /// Takes a connection's socket, lends it to `body` to read and write, and parks it when `body` returns.
    ///
    /// A socket that has ended with bytes that nobody has read comes first, with ``TakenFlow/isOver``. It cannot be
    /// parked: the next one is taken, and `body` is called again with that. The same happens where another socket took
    /// the place of this one meanwhile. Where there is no next one yet, this returns; an event tells when there is.
    ///
    /// Where `body` throws, the socket stays taken by this process, since nobody knows where in the stream it stands.
    /// It also stays taken where the task is cancelled before the socket is parked. This process can take it again;
    /// other processes cannot, until this one parks it or ends.
    ///
    /// - Parameters:
    ///   - owner: as for ``take(_:owner:until:)``.
    ///   - awaited: as there, for the first socket. The ones after it are not waited for.
    ///   - body: is lent the socket for the time of the call. After each call `O_NONBLOCK` is cleared if it is set. The
    ///     descriptor is closed for `body`, which does not keep its number.
    /// - Throws: what `body` throws, or a ``DialtoneError``. Its ``DialtoneError/code`` is `notReady` where there is no
    ///   first socket, and `heldByClient` where another process has the first socket or one after it.
    public func withSocket(
        _ name: String, owner: Int? = nil, until awaited: ConnectionsAPI.Take.Parameters.Until? = nil,
        _ body: (borrowing TakenFlow) async throws -> Void
    ) async throws {
        var flow = try await take(name, owner: owner, until: awaited)
        while true {
            do {
                defer { flow.clearNonblocking() }
                try await body(flow)
            }
            do throws(DialtoneError) {
                // One that has ended cannot be parked.
                if !flow.isOver { return try await park(name, owner: owner, epoch: flow.epoch) }
            } catch {
                guard error.code == .staleEpoch else { throw error }
            }
            do throws(DialtoneError) {
                flow = try await take(name, owner: owner)
            } catch {
                guard error.code == .notReady else { throw error }
                return
            }
        }
    }

    /// Supervises a socket that the caller opened, and returns the connection's name. The caller's own descriptor stays
    /// the caller's, to be closed once the daemon has the socket.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - remote: where to dial when the socket is lost; `nil` for nowhere, and the connection ends with the socket.
    ///   - settings: how it is kept.
    public func adopt(
        _ socket: borrowing OwnedDescriptor, as name: String, remote: String? = nil,
        settings: ConnectionsAPI.Settings? = nil
    ) async throws(DialtoneError) -> String {
        let copy: OwnedDescriptor
        do { copy = try socket.duplicate() } catch { throw .unreachable(error) }
        let descriptors = await VarlinkDescriptors()
        let place = await descriptors.append(copy)
        return try await callWithDescriptors(
            ConnectionsAPI.Adopt.self,
            .init(name: name, fileDescriptor: place, remote: remote, settings: settings), descriptors
        ).reply.name
    }

    /// Says that the caller sees to what it was woken for, so that it is not woken again.
    public func acknowledge(_ name: String, wake: Int) async throws(DialtoneError) {
        _ = try await call(ConnectionsAPI.Acknowledge.self, .init(name: name, wake: wake))
    }

    /// Calls `handler` at least once in each `timeout` while the socket is parked, to keep a connection alive whose
    /// protocol the daemon does not know; earlier where the call can share a wake-up with others. The handler takes the
    /// socket, does what it must and parks it, in ten seconds; one that takes longer is reported.
    ///
    /// It goes on, across restarts of the daemon, until the task is cancelled or the daemon refuses. It returns when
    /// another caller has taken its place.
    ///
    /// - Parameter wakeMachine: whether to wake a sleeping machine for it, which not every user may.
    public func keepAlive(
        _ name: String, timeout: Duration, wakeMachine: Bool? = nil, _ handler: @Sendable () async -> Void
    ) async throws(DialtoneError) {
        let parameters = ConnectionsAPI.KeepAlive.Parameters(
            name: name, timeout: timeout, wakeMachine: wakeMachine)
        var pause = RetryPause()
        while true {
            var calls = stream(ConnectionsAPI.KeepAlive.self, parameters).makeAsyncIterator()
            do throws(DialtoneError) {
                while let reply = try await calls.next() {
                    pause = RetryPause()
                    guard let wake = reply.wake else { continue }
                    try await acknowledge(name, wake: wake)
                    await handler()
                }
                return
            } catch {
                guard error.isPassing else { throw error }
            }
            try await pause.wait()
        }
    }
}

/// How long to wait until a daemon that is gone is looked for again.
package struct RetryPause {
    private var length = ConnectionEvents.shortestPause

    /// The first of a row of pauses.
    package init() {}

    /// Waits, and longer the next time.
    package mutating func wait() async throws(DialtoneError) {
        do { try await Task.sleep(for: length) } catch { throw .cancelled }
        length = min(length * 2, ConnectionEvents.longestPause)
    }
}
