// SPDX-License-Identifier: Apache-2.0

public import NetworkPath
public import Platform
public import Supervisor
internal import TLS

/// Something that goes on until it is cancelled: a query, an observation.
@AgentQueue
public protocol Ongoing: AnyObject {
    /// Ends it. Its handler is not called any more, and is released.
    func cancel()
}

/// Where connections learn the way to their remote.
@AgentQueue
public protocol PathSource: AnyObject {
    /// Calls `handler` with the path to `target` as it is now, within this call or soon after, and with each later one,
    /// until what is returned is cancelled.
    func observePath(to target: Target, _ handler: @escaping @AgentQueue (Path) -> Void) -> any Ongoing
}

/// Where connections learn the addresses of a name.
@AgentQueue
public protocol NameSource: AnyObject {
    /// Asks anew, cached answers aside that are within their time to live, and calls `completion` once: with at least
    /// one address, in the order in which to try them, or with why there is none. The target gives the properties that
    /// the order may depend on. Not called after what is returned was cancelled.
    func resolve(
        _ name: String, for target: Target,
        _ completion: @escaping @AgentQueue (Result<[IPAddress], ResolutionFailure>) -> Void
    ) -> any Ongoing
}

/// What all connections of an agent share.
@AgentQueue
public final class DialerContext {
    /// Where they learn the way to their remote.
    public let paths: any PathSource
    /// Where they learn the addresses of a name.
    public let names: any NameSource
    /// The trust and the certificates that connections with TLS share.
    let tls = TLSContexts()

    /// The surroundings of connections.
    public init(paths: any PathSource, names: any NameSource) {
        self.paths = paths
        self.names = names
    }
}

/// Who hears what happens to connections.
@AgentQueue
public protocol ConnectionObserver: AnyObject {
    /// Something happened. The connection's ``ConnectionDriver/status`` says already what the event says.
    func connection(_ connection: ConnectionDriver, did event: ConnectionEvent)
}
