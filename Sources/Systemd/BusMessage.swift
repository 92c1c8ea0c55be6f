// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSystemd
internal import DialtonePlatform
internal import Glibc

/// A message that arrived, read from its front; sd_bus_message_read_basic(3). For the length of the callback only.
///
/// What the sender put there is not what was agreed: a reader that meets another type gets `nil`, and stops.
struct BusMessage {
    private let message: OpaquePointer

    init(_ message: OpaquePointer) {
        self.message = message
    }

    /// Whether it is an error in the place of an answer.
    var isError: Bool { sd_bus_message_is_method_error(message, nil) > 0 }

    /// What the error says in words, or else its name; `nil` for an answer that is none.
    var errorText: String? {
        guard isError, let error = sd_bus_message_get_error(message)?.pointee else { return nil }
        return (error.message ?? error.name).map { String(cString: $0) } ?? "refused"
    }

    /// The object that a signal is about.
    var path: String? { sd_bus_message_get_path(message).map { String(cString: $0) } }

    /// A string or an object's path.
    func string() -> String? {
        var type: CChar = 0
        guard sd_bus_message_peek_type(message, &type, nil) > 0, "so".utf8.contains(UInt8(bitPattern: type)) else {
            return nil
        }
        var text: UnsafePointer<CChar>?
        guard sd_bus_message_read_basic(message, type, &text) > 0 else { return nil }
        return text.map { String(cString: $0) }
    }

    func uint32() -> UInt32? {
        var number: UInt32 = 0
        return sd_bus_message_read_basic(message, CChar(UInt8(ascii: "u")), &number) > 0 ? number : nil
    }

    func int32() -> Int32? {
        var number: Int32 = 0
        return sd_bus_message_read_basic(message, CChar(UInt8(ascii: "i")), &number) > 0 ? number : nil
    }

    func boolean() -> Bool? {
        var value: CInt = 0
        return sd_bus_message_read_basic(message, CChar(UInt8(ascii: "b")), &value) > 0 ? value != 0 : nil
    }

    /// A descriptor that rode along; a duplicate, since the message closes its own.
    func descriptor() -> OwnedDescriptor? {
        var number: CInt = -1
        guard sd_bus_message_read_basic(message, CChar(UInt8(ascii: "h")), &number) > 0 else { return nil }
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 0)
        return copy < 0 ? nil : OwnedDescriptor(copy)
    }

    /// Calls `body` for each element of an array, at whose beginning it stands, until `body` returns false.
    func forEach(in signature: String, _ body: () -> Bool) {
        guard sd_bus_message_enter_container(message, CChar(UInt8(ascii: "a")), signature) > 0 else { return }
        while sd_bus_message_at_end(message, 0) == 0, body() {}
        sd_bus_message_exit_container(message)
    }

    /// Calls `body` with the name of each property of an `a{sv}`, standing at its value, which it reads whole or not at
    /// all.
    ///
    /// - Parameter types: the properties to be read, with the type of each.
    func forEachProperty(_ types: [String: String], _ body: (String) -> Void) {
        forEach(in: "{sv}") {
            guard sd_bus_message_enter_container(message, CChar(UInt8(ascii: "e")), "sv") > 0, let name = string()
            else { return false }
            if let type = types[name], sd_bus_message_enter_container(message, CChar(UInt8(ascii: "v")), type) > 0 {
                body(name)
                sd_bus_message_exit_container(message)
            } else if sd_bus_message_skip(message, "v") < 0 {
                return false
            }
            return sd_bus_message_exit_container(message) >= 0
        }
    }
}
