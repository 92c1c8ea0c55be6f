// SPDX-License-Identifier: Apache-2.0

public import NetworkPath

/// What the driver is to do. ``ConnectionStateMachine`` says in which order, and what each is answered with.
public enum ConnectionAction: Hashable, Sendable {
    /// Watch the path to this target, and no other any more.
    case observePath(Target)
    /// Watch no path any more.
    case stopObservingPath
    /// Ask for the addresses of a name.
    case resolve(query: UInt64, name: String)
    /// Send no more packets for a query; its answer is not wanted.
    case cancelResolution(query: UInt64)
    /// Make a socket, connect it, and secure it where the request says so.
    case openSocket(FlowRequest)
    /// Change the keepalive and the user timeout of a socket that is open.
    case configureSocket(epoch: UInt64, SocketOptions)
    /// Close a socket, now.
    case closeSocket(epoch: UInt64, CloseReason)
    /// Tell when a deadline has passed; replaces an earlier deadline of the same timer.
    case scheduleTimer(ConnectionTimer, deadline: Duration)
    /// Forget a timer.
    case cancelTimer(ConnectionTimer)
    /// Tell the subscribers.
    case emit(ConnectionEvent)
}

/// The timers of a connection. Each belongs to one state, and a ready flow has none.
public enum ConnectionTimer: Hashable, Sendable, CaseIterable {
    /// When to give up waiting for the resolver's answer.
    case resolution
    /// When to give up connecting to one address, and then the handshake with it.
    case connect
    /// When to dial again after a failure.
    case retry
}

/// What a new socket is to be.
public struct FlowRequest: Hashable, Sendable {
    /// The flow's number; every word about the socket carries it.
    public var epoch: UInt64
    /// Where to connect to.
    public var remote: Endpoint
    /// The address to bind to, when the path was found for this very remote; `nil` leaves the choice to the kernel.
    public var source: IPAddress?
    /// The index of the path's interface, which gives a link-local address its scope; `nil` when not known.
    public var interfaceIndex: Int?
    /// What to set on the socket.
    public var options: SocketOptions
    /// How to secure it; `nil` for a remote without TLS.
    public var tls: TLSRequest?

    /// A request.
    public init(
        epoch: UInt64, remote: Endpoint, source: IPAddress? = nil, interfaceIndex: Int? = nil, options: SocketOptions,
        tls: TLSRequest? = nil
    ) {
        self.epoch = epoch
        self.remote = remote
        self.source = source
        self.interfaceIndex = interfaceIndex
        self.options = options
        self.tls = tls
    }
}

/// Why a socket is closed.
public enum CloseReason: String, Hashable, Sendable, CaseIterable {
    /// No path leads to the remote any more.
    case pathLost
    /// The path leads another way, and the socket was not connected yet.
    case pathMoved
    /// Its local address is gone: nothing it sends can be answered, not even a FIN.
    case localAddressRemoved
    /// It could not connect.
    case dialFailed
    /// It did not connect, or was not secured, in time.
    case timedOut
    /// The remote ended the stream.
    case remoteClosed
    /// It broke.
    case failed
    /// The user wants a new flow, or a flow elsewhere.
    case superseded
    /// The user ended the connection.
    case closeRequested
}
