// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import DialtonePlatform
public import Dispatch

/// Registers the app for pushes and receives them; PushKit's `PKPushRegistry`.
///
/// ```swift
/// let registry = PushRegistry(appID: "org.example.Phone", queue: .main)
/// registry.delegate = phone
/// registry.desiredPushTypes = [.voIP]
/// ```
///
/// It is a connector of UnifiedPush over D-Bus and works with any distributor. It owns the app's name on the session
/// bus, so that a distributor finds the app, or has the bus start it: see <doc:APhoneThatSleeps>. The
/// keys and tokens are in `$XDG_STATE_HOME/dialtone-push`, by default `~/.local/state/dialtone-push`, readable for the
/// user alone.
///
/// Nothing happens until ``desiredPushTypes`` is set. Hold on to the registry: pushes come for as long as it is there.
/// Any thread may call any method.
public final class PushRegistry: Sendable {
    private struct State {
        weak var delegate: (any PushRegistryDelegate)?
        var desired: Set<PushType>?
        var credentials: [PushType: PushCredentials] = [:]
    }

    /// So many events wait for a `for await` that is slow; a push beyond that is refused, and the distributor tries
    /// again.
    private static let mostWaiting = 64

    private let queue: DispatchQueue
    private let state = Lock(State())
    private let connector: PushConnector
    private let continuation: AsyncStream<PushEvent>.Continuation

    /// What happens, for one `for await` loop, in the place of a delegate: while ``delegate`` is set nothing comes
    /// here. Ends with the registry.
    public let events: AsyncStream<PushEvent>

    /// A registry for an app.
    ///
    /// - Parameters:
    ///   - appID: the name that the app owns on the session bus: the reverse domain name of its `.desktop` and D-Bus
    ///     service files. A process has one registry for a name.
    ///   - queue: where the delegate is called.
    ///   - serverKey: the public key by which the app's server identifies itself (VAPID, RFC 8292) in its text form, 87
    ///     characters. Push services that know VAPID then take pushes for this app from nobody else, and some take no
    ///     app without.
    ///   - description: what the pushes are for, for a person who looks at the distributor's list.
    public convenience init(
        appID: String, queue: DispatchQueue = .main, serverKey: String? = nil, description: String? = nil
    ) {
        self.init(
            PushConnector.Settings(
                appID: appID, serverKey: serverKey, description: description,
                busAddress: BusConnection.sessionAddress, environment: processEnvironment()),
            queue: queue)
    }

    init(_ settings: PushConnector.Settings, queue: DispatchQueue) {
        self.queue = queue
        (events, continuation) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingOldest(Self.mostWaiting))
        connector = PushConnector(settings)
        connector.tell = { [weak self] in self?.take($0) }
    }

    deinit {
        continuation.finish()
        let connector = connector
        AgentQueue.async { connector.stop() }
    }

    /// Who is told. It is held weakly.
    public var delegate: (any PushRegistryDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// What the app wants pushes for. Setting it registers for what is not registered yet, and gives up the
    /// registrations for other types; `nil` leaves everything as it is.
    public var desiredPushTypes: Set<PushType>? {
        get { state.withLock { $0.desired } }
        set {
            state.withLock { state in
                state.desired = newValue
                if let newValue { state.credentials = state.credentials.filter { newValue.contains($0.key) } }
            }
            guard let newValue else { return }
            AgentQueue.async { [connector] in connector.register(for: newValue) }
        }
    }

    /// The token that the app was last told of, as ``PushCredentials/token``; `nil` where it has none.
    public func pushToken(for type: PushType) -> String? {
        state.withLock { $0.credentials[type] }?.token
    }

    /// Tells the app. Called on the agent's queue.
    private func take(_ event: PushEvent) {
        let delegate = state.withLock { state in
            switch event {
            case .credentials(let credentials): state.credentials[credentials.type] = credentials
            case .invalidated(let type): state.credentials[type] = nil
            case .push, .failed: break
            }
            return state.delegate
        }
        guard let delegate else {
            continuation.yield(event)
            return
        }
        queue.async { [self] in
            switch event {
            case .credentials(let credentials):
                delegate.pushRegistry(self, didUpdate: credentials, for: credentials.type)
            case .push(let push):
                delegate.pushRegistry(
                    self, didReceiveIncomingPushWith: push.payload, for: push.payload.type,
                    completion: { push.complete() })
            case .invalidated(let type): delegate.pushRegistry(self, didInvalidatePushTokenFor: type)
            case .failed(let error): delegate.pushRegistry(self, didFailWith: error)
            }
        }
    }
}
