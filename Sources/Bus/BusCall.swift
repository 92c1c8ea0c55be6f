// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneBus
package import DialtonePlatform

/// A call of a method of ours. It is answered once, now or later; one that nobody holds any more without having
/// answered it is answered with an error.
///
/// It keeps nothing of the message: what came with a call that waits takes no memory and no descriptors.
@AgentQueue
package final class BusCall {
    /// The unique name of who calls. The bus writes that; nobody can write it for another.
    package nonisolated let sender: String
    /// The arguments, within the method's handler; none later. Their types are those of the method's declaration.
    package private(set) var arguments: [BusValue]
    /// The types of the answer's values.
    private let results: String
    /// By which the caller knows its call; `nil` once it is answered, or where the caller wants no answer.
    private var serial: UInt64?
    private weak var connection: BusConnection?
    private let generation: Int

    init(
        _ message: OpaquePointer, from sender: String, _ arguments: [BusValue], results: String,
        on connection: BusConnection
    ) {
        self.sender = sender
        self.arguments = arguments
        self.results = results
        var number: UInt64 = 0
        if sd_bus_message_get_expect_reply(message) > 0, sd_bus_message_get_cookie(message, &number) >= 0 {
            serial = number
        }
        self.connection = connection
        generation = connection.generation
    }

    isolated deinit {
        fail(BusFailure.Name.failed, "nobody answered this call")
    }

    /// The handler has returned.
    func forgetArguments() { arguments = [] }

    /// Answers with values, whose types are those of the method's declaration. A caller that did not ask for an answer
    /// gets none, nor does one on a bus that went.
    package func reply(_ values: [BusValue] = []) {
        // What the caller sent has no part in it: both are the program's own.
        assert(values.map(\.signature).joined() == results, "an answer of other types than were declared")
        send { call in
            var reply: OpaquePointer?
            guard sd_bus_message_new_method_return(call, &reply) >= 0, let reply else { return nil }
            let writer = BusArguments(reply)
            for value in values { writer.value(value) }
            if !writer.isBroken { return reply }
            sd_bus_message_unref(reply)
            return BusCall.error(BusFailure.Name.failed, "the answer could not be written", to: call)
        }
    }

    /// Answers with an error.
    ///
    /// - Parameter name: one of ``BusFailure/Name``, or another name with two elements at least.
    package func fail(_ name: String, _ text: String) {
        send { BusCall.error(name, text, to: $0) }
    }

    private nonisolated static func error(_ name: String, _ text: String, to call: OpaquePointer) -> OpaquePointer? {
        var reply: OpaquePointer?
        return name.withCString { name in
            text.withCString { text in
                var error = sd_bus_error(name: name, message: text, _need_free: 0)
                return sd_bus_message_new_method_error(call, &reply, &error) >= 0 ? reply : nil
            }
        }
    }

    private func send(_ make: (OpaquePointer) -> OpaquePointer?) {
        guard let serial else { return }
        self.serial = nil
        // Each bus numbers its callers from the start: on another bus this name may be somebody else's.
        guard let connection, connection.generation == generation, let bus = connection.bus,
            let call = Self.stub(sender, serial, on: bus)
        else { return }
        defer { sd_bus_message_unref(call) }
        guard let reply = make(call) else { return }
        connection.send(reply)
        sd_bus_message_unref(reply)
    }

    /// A call with all that sd-bus looks at to answer one: who called, and by which number.
    private nonisolated static func stub(_ sender: String, _ serial: UInt64, on bus: OpaquePointer) -> OpaquePointer? {
        var call: OpaquePointer?
        guard sd_bus_message_new_method_call(bus, &call, nil, "/", nil, "Any") >= 0, let call else { return nil }
        if sd_bus_message_set_sender(call, sender) >= 0, sd_bus_message_seal(call, serial, 0) >= 0 { return call }
        sd_bus_message_unref(call)
        return nil
    }
}
