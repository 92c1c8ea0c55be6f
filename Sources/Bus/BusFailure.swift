// SPDX-License-Identifier: Apache-2.0

/// Why a call got no answer, or an error in its place.
package enum BusFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// There is no connection to the bus, or it was lost before the answer came.
    case disconnected
    /// No answer came in time.
    case timedOut
    /// The service left the bus before it answered.
    case serviceEnded
    /// Nobody owns the name, and the bus knows no way to start a service of it.
    case unknownService(String)
    /// The bus itself refused; nobody else saw the call. Why it could not start the service is told here, too.
    case refusedByBus(name: String, text: String)
    /// The service answered with an error.
    case error(name: String, text: String)

    /// For the end of a sentence.
    package var description: String {
        switch self {
        case .disconnected: "the bus is gone"
        case .timedOut: "no answer in time"
        case .serviceEnded: "the service left the bus before it answered"
        case .unknownService(let text): text
        case .refusedByBus(let name, let text), .error(let name, let text): text.isEmpty ? name : text
        }
    }

    /// The names of errors that somebody looks for (D-Bus specification, "Standard error names" of its reference
    /// implementation's dbus-protocol.h).
    package enum Name {
        static let serviceUnknown = "org.freedesktop.DBus.Error.ServiceUnknown"
        static let noReply = "org.freedesktop.DBus.Error.NoReply"
        /// Nobody owns the name.
        package static let nameHasNoOwner = "org.freedesktop.DBus.Error.NameHasNoOwner"
        /// The arguments are not those of the method.
        package static let invalidArguments = "org.freedesktop.DBus.Error.InvalidArgs"
        /// Too many wait already.
        package static let limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
        /// Anything else.
        package static let failed = "org.freedesktop.DBus.Error.Failed"
        static let unknownMethod = "org.freedesktop.DBus.Error.UnknownMethod"
        static let unknownInterface = "org.freedesktop.DBus.Error.UnknownInterface"
    }
}
