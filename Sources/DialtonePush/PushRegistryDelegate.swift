// SPDX-License-Identifier: Apache-2.0

/// What a ``PushRegistry`` tells its app, on the registry's queue, one call at a time and in order; PushKit's
/// `PKPushRegistryDelegate`.
public protocol PushRegistryDelegate: AnyObject, Sendable {
    /// The app has a token for this type, or another one than before: hand it to the app's server. It is called at each
    /// start as well.
    func pushRegistry(_ registry: PushRegistry, didUpdate pushCredentials: PushCredentials, for type: PushType)

    /// A push arrived.
    ///
    /// - Parameter completion: to be called, on any thread, when the app has done what the push asks for: has it on
    ///   disk, or has reported the call. The distributor keeps the push until then. Where it is let go of without a
    ///   call, the distributor learns that the push was not handled.
    func pushRegistry(
        _ registry: PushRegistry, didReceiveIncomingPushWith payload: PushPayload, for type: PushType,
        completion: @escaping @Sendable () -> Void)

    /// The token for this type is no longer valid: take it away from the app's server. Set
    /// ``PushRegistry/desiredPushTypes`` for a new one.
    func pushRegistry(_ registry: PushRegistry, didInvalidatePushTokenFor type: PushType)

    /// Something keeps pushes from coming. PushKit has no such call; an app that has none is told nothing.
    func pushRegistry(_ registry: PushRegistry, didFailWith error: PushError)
}

extension PushRegistryDelegate {
    /// Does nothing.
    public func pushRegistry(_ registry: PushRegistry, didInvalidatePushTokenFor type: PushType) {}

    /// Does nothing.
    public func pushRegistry(_ registry: PushRegistry, didFailWith error: PushError) {}
}
