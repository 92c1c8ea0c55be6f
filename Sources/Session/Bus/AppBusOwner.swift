// SPDX-License-Identifier: Apache-2.0

package import DialtoneBus
package import DialtoneDistributor
package import DialtonePlatform

/// Whom an ``AppBus`` tells what apps ask for: the driver of the distributor. All of it on the agent's queue.
@AgentQueue
package protocol AppBusOwner: AnyObject {
    /// An app asks to be registered. Who asks is verified, and the sizes are within UnifiedPush's.
    ///
    /// - Parameter answer: is to be called once, now or later. Where the bus goes before, nobody gets the answer.
    func registerAsked(
        _ request: RegistrationRequest, answer: @escaping @AgentQueue (RegistrationAnswer) -> Void)

    /// Whether an app, which is verified, has registered the same before: nothing is to be done then but to tell it
    /// its endpoint.
    func isRegistered(_ request: RegistrationRequest) -> Bool

    /// The apps that have a registration of this token, to find out whose the caller is that wants to end it.
    func apps(registeredAs token: String) -> [AppIdentity]

    /// An app, which is verified, ends its registration.
    func unregisterAsked(_ app: AppIdentity, token: String)

    /// A caller was refused; why, for the history. Not more than some a minute.
    func callerRefused(_ why: String)

    /// Somebody owns the name of an app that is followed, and nobody did before.
    func appAppeared(_ name: String)

    /// Nobody owns it any more.
    func appVanished(_ name: String)

    /// The connection with the bus is new: at the start, and after each loss.
    func busConnected()

    /// The bus went. What was asked of it and what it asked is over; it is connected to again.
    func busLost()

    /// How it stands with the distributor's own name. Without it no app finds the distributor.
    func nameChanged(_ state: BusConnection.NameState)
}
