// SPDX-License-Identifier: Apache-2.0

/// What the distributor is told.
package enum DistributorInput: Hashable, Sendable {
    /// An app called Register. The call is answered by ``DistributorEffect/answer(call:_:)``, once, maybe in a later
    /// turn.
    case register(RegistrationRequest, call: UInt64)
    /// An app called Unregister. It is answered at once by the driver: there is nothing that could fail for the app.
    case unregister(AppIdentity, token: String)
    /// Messages came, the server's value has something to remember, and the server knows nothing of what was
    /// registered; all from one turn of it. The loss is not reported once more: where the new memory were saved without
    /// it, a process that ends in between would never hear of it. Nothing is asked of the server before its next
    /// `.loggedIn`.
    case arrived(ServerName, [ArrivedMessage], memory: [UInt8]?, identityLost: String? = nil)
    /// A server's value told something.
    case reported(ServerName, PushServerReport)
    /// What came of a call of an app, by the number of ``AppTelling/attempt``.
    case answered(attempt: UInt64, AppAnswer)
    /// Somebody owns this bus name who did not. That a name vanished need not be told: the bus answers each call of it.
    case appAppeared(String)
    /// The connection with the bus is new: at the start, and after a restart of the bus. Calls that were under way are
    /// over; those of Register, too.
    case busConnected
    /// The state of the machine changed. Until it is told, it is ``PushConditions/init()``.
    case conditions(PushConditions)
    /// The machine is about to sleep.
    case suspending
    /// The machine woke up, or does not sleep after all.
    case resumed
    /// The user wants something; answered by ``DistributorEffect/done(call:_:)``, once.
    case command(DistributorCommand, call: UInt64)
    /// ``Distributor/deadline`` is there. Also the first input after the start.
    case timePassed
}

/// What decides which messages of the kind `standard` wait.
package struct PushConditions: Hashable, Sendable {
    /// Whether the machine runs on its battery (UPower's `OnBattery`).
    package var isOnBattery = false
    /// How full the battery is, in percent; `nil` for none, or where nobody says.
    package var batteryLevel: Int?
    /// Whether data costs (a metered network, ``NetworkPath``'s `isExpensive`).
    package var isExpensive = false
    /// Whether the user wants data saved (``NetworkPath``'s `isConstrained`).
    package var isConstrained = false

    /// A machine at the mains with a network that costs nothing.
    package init() {}
}

/// What the user wants of the distributor.
package enum DistributorCommand: Hashable, Sendable {
    /// Call an app with a message of this body, which is neither stored nor tried again.
    case test(registration: Int64, body: [UInt8])
    /// End a registration, and tell its app.
    case remove(registration: Int64)
    /// Register everything at this server; `nil`: there is no push until the next one is named.
    case use(ServerName?)
    /// Drop what is still to be ended at a server that the configuration does not have any more, with what it
    /// remembers.
    case forget(ServerName)
}
