// SPDX-License-Identifier: Apache-2.0

public import DialtoneAPI
public import Platform
internal import Varlink

/// A flow that was taken.
public struct TakenFlow: ~Copyable, Sendable {
    /// The connection it is of.
    public let connection: ConnectionsAPI.Connection
    /// The number of the flow, to park it with.
    public let epoch: Int
    /// Whether it has ended: what it received before is there to be read, and then the end.
    public let isOver: Bool
    /// The socket. Whether its reads wait (`O_NONBLOCK`) is shared with the daemon's copy.
    public let descriptor: OwnedDescriptor

    /// Gives up the rest, for code that owns descriptors by number.
    public consuming func release() -> CInt { descriptor.release() }
}

extension DialtoneClient {
    /// Takes a connection's flow, to read and write it. The daemon keeps a copy until it is parked; a client that ends
    /// without parking loses no byte, unless it has read or written some before.
    ///
    /// - Parameters:
    ///   - owner: for root, whose connection of that name is meant; `nil` for root's own, or the only one.
    ///   - awaited: what is waited for; `nil` for nothing: where there is no flow, or another process has it, the call
    ///     fails.
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

    /// Gives a flow back, with a session on it, for the daemon to keep alive. The caller's own descriptor is closed
    /// afterwards, by the caller; `O_NONBLOCK` is cleared before if it was set.
    ///
    /// - Parameters:
    ///   - owner: as for ``take(_:owner:)``.
    ///   - opening: what the daemon says on each new flow from now on to log in for the caller; empty for nothing,
    ///     `nil` for what it did before.
    public func park(
        _ name: String, owner: Int? = nil, epoch: Int, opening: [ConnectionsAPI.OpeningStep]? = nil
    ) async throws(DialtoneError) {
        _ = try await call(ConnectionsAPI.Park.self, .init(name: name, owner: owner, epoch: epoch, opening: opening))
    }

    /// Takes a connection's flow, has `body` read and write it, and parks it once `body` returns. A flow on which it
    /// throws stays taken, since nobody knows where in the stream it stands: the caller takes it again, or ends.
    ///
    /// A flow that has ended and was not read comes first; then, or where another flow took the place of this one
    /// meanwhile, `body` is called again with that. Where there is none yet, it returns: the next event tells of it.
    ///
    /// - Parameters:
    ///   - owner: as for ``take(_:owner:until:)``.
    ///   - awaited: as there.
    ///   - body: is given the descriptor of the socket, which is closed afterwards, and the connection with the session
    ///     that is on it.
    public func withSocket(
        _ name: String, owner: Int? = nil, until awaited: ConnectionsAPI.Take.Parameters.Until? = nil,
        _ body: (CInt, ConnectionsAPI.Connection) async throws -> Void
    ) async throws {
        var flow = try await take(name, owner: owner, until: awaited)
        while true {
            try await body(flow.descriptor.number, flow.connection)
            do throws(DialtoneError) {
                // What has ended cannot be parked.
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
    ///   - remote: where to dial when the flow is lost; `nil` for nowhere, and the connection ends with the flow.
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

    /// Calls `handler` at least once in each `timeout` while the flow is parked, to keep a connection alive whose
    /// protocol the daemon does not know; earlier where the call can share a wake-up with others. The handler takes the
    /// flow, does what it must and parks it, in ten seconds; one that takes longer is reported.
    ///
    /// It goes on, across restarts of the daemon, until the task is cancelled or the daemon refuses. It returns when
    /// another caller has taken its place.
    ///
    /// - Parameter wakeMachine: whether to wake a sleeping machine for it, which not every user may.
    public func keepAlive(
        _ name: String, timeout: Duration, wakeMachine: Bool? = nil, _ handler: @Sendable () async -> Void
    ) async throws(DialtoneError) {
        let parameters = ConnectionsAPI.KeepAlive.Parameters(
            name: name, timeoutMilliseconds: Int(clamping: timeout.milliseconds), wakeMachine: wakeMachine)
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
struct RetryPause {
    private var length = ConnectionEvents.shortestPause

    /// Waits, and longer the next time.
    mutating func wait() async throws(DialtoneError) {
        do { try await Task.sleep(for: length) } catch { throw .cancelled }
        length = min(length * 2, ConnectionEvents.longestPause)
    }
}
