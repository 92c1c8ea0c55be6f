// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneBus
package import DialtonePlatform
internal import Glibc

/// A message that arrived, read from its front; sd_bus_message_read_basic(3). For the length of the callback only.
///
/// What the sender put there is not what was agreed: a reader that meets another type gets `nil`, and stops.
package struct BusMessage {
    private let message: OpaquePointer

    init(_ message: OpaquePointer) {
        self.message = message
    }

    /// Whether it is an error in the place of an answer.
    var isError: Bool { sd_bus_message_is_method_error(message, nil) > 0 }

    /// The name and the words of the error that it is.
    var error: (name: String, text: String) {
        let error = sd_bus_message_get_error(message)?.pointee
        return (Self.text(error?.name) ?? BusFailure.Name.failed, Self.text(error?.message) ?? "")
    }

    /// Who sent it: the unique name of its connection, or `org.freedesktop.DBus` for the bus itself. The bus writes
    /// that; nobody can write it for another.
    package var sender: String? { Self.text(sd_bus_message_get_sender(message)) }

    /// The object that a signal is about.
    package var path: String? { Self.text(sd_bus_message_get_path(message)) }

    var interface: String? { Self.text(sd_bus_message_get_interface(message)) }

    var member: String? { Self.text(sd_bus_message_get_member(message)) }

    /// The types of all its arguments.
    var signature: String { Self.text(sd_bus_message_get_signature(message, 1)) ?? "" }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }

    /// A string or an object's path.
    package func string() -> String? {
        guard let next = next, next.type == "s" || next.type == "o" else { return nil }
        return text(next.type).map { String(cString: $0) }
    }

    /// A `u`.
    package func uint32() -> UInt32? { basic("u", UInt32(0)) }

    /// An `i`.
    package func int32() -> Int32? { basic("i", Int32(0)) }

    /// A `b`.
    package func boolean() -> Bool? { basic("b", CInt(0)).map { $0 != 0 } }

    /// A descriptor that rode along; a duplicate, since the message closes its own.
    package func descriptor() -> OwnedDescriptor? {
        guard let number = basic("h", CInt(-1)) else { return nil }
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 0)
        return copy < 0 ? nil : OwnedDescriptor(copy)
    }

    /// Calls `body` for each element of an array, at whose beginning it stands, until `body` returns false.
    package func forEach(in signature: String, _ body: () -> Bool) {
        guard sd_bus_message_enter_container(message, CChar(UInt8(ascii: "a")), signature) > 0 else { return }
        while sd_bus_message_at_end(message, 0) == 0, body() {}
        sd_bus_message_exit_container(message)
    }

    /// Calls `body` with the name of each property of an `a{sv}`, standing at its value, which it reads whole or not at
    /// all.
    ///
    /// - Parameter types: the properties to be read, with the type of each.
    package func forEachProperty(_ types: [String: String], _ body: (String) -> Void) {
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

    // MARK: Values

    /// So much of a message is read as values: all that is called here or answered is far below, a sender that has
    /// more means no good.
    private struct Budget {
        var bytes = 64 * 1024
        var values = 4096
        var depth = 8

        /// Takes a value with so many bytes; whether there was room.
        mutating func take(_ count: Int, values number: Int = 1) -> Bool {
            guard values >= number, count <= bytes else { return false }
            values -= number
            bytes -= count
            return true
        }
    }

    /// All its arguments, from where it stands; `nil` where they are malformed, or more than 64 KiB of text
    /// (types of variants are text), 4096 values or 8 levels, or where a dictionary has a name twice. What nobody reads
    /// counts like what is read.
    package func values() -> [BusValue]? {
        var budget = Budget()
        return values(&budget)
    }

    private var next: (type: Unicode.Scalar, contents: String)? {
        var type: CChar = 0
        var contents: UnsafePointer<CChar>?
        guard sd_bus_message_peek_type(message, &type, &contents) > 0 else { return nil }
        return (Unicode.Scalar(UInt8(bitPattern: type)), Self.text(contents) ?? "")
    }

    /// What is left of the container that it stands in.
    private func values(_ budget: inout Budget) -> [BusValue]? {
        var values: [BusValue] = []
        while sd_bus_message_at_end(message, 0) == 0 {
            guard let value = value(&budget) else { return nil }
            values.append(value)
        }
        return sd_bus_message_at_end(message, 0) > 0 ? values : nil
    }

    private func value(_ budget: inout Budget) -> BusValue? {
        guard let (type, contents) = next, budget.take(0) else { return nil }
        switch type {
        case "s", "o", "g":
            guard let pointer = text(type), budget.take(strlen(pointer)) else { return nil }
            if type == "g" { return .other("g") }
            let text = String(cString: pointer)
            return type == "s" ? .string(text) : .path(text)
        case "b": return boolean().map { .boolean($0) }
        case "y": return basic("y", UInt8(0)).map { .byte($0) }
        case "i": return int32().map { .int32($0) }
        case "u": return uint32().map { .uint32($0) }
        case "x": return basic("x", Int64(0)).map { .int64($0) }
        case "t": return basic("t", UInt64(0)).map { .uint64($0) }
        case "d": return basic("d", 0.0).map { .double($0) }
        case "a" where contents == "y": return bytes(&budget)
        case "a" where contents == "{sv}": return within("a", contents, &budget, dictionary)
        // A dictionary of other types, which nobody reads.
        case "a" where contents.hasPrefix("{"):
            return within("a", contents, &budget) { values(&$0).map { _ in .other("a\(contents)") } }
        case "a": return within("a", contents, &budget) { values(&$0).map { .array(of: contents, $0) } }
        case "r", "e": return within(type, contents, &budget) { values(&$0).map { .structure($0) } }
        case "v":
            guard budget.take(contents.utf8.count, values: 0) else { return nil }
            return within("v", contents, &budget) { budget in value(&budget).map { .variant($0) } }
        default:
            // One number.
            let signature = String(Character(type))
            return sd_bus_message_skip(message, signature) < 0 ? nil : .other(signature)
        }
    }

    private func bytes(_ budget: inout Budget) -> BusValue? {
        var (pointer, count): (UnsafeRawPointer?, Int) = (nil, 0)
        guard sd_bus_message_read_array(message, CChar(UInt8(ascii: "y")), &pointer, &count) > 0, budget.take(count)
        else { return nil }
        return .bytes(Array(UnsafeRawBufferPointer(start: pointer, count: count)))
    }

    private func dictionary(_ budget: inout Budget) -> BusValue? {
        var entries: [String: BusValue] = [:]
        while sd_bus_message_at_end(message, 0) == 0 {
            let entry = within("e", "sv", &budget) { values(&$0).map { .structure($0) } }
            guard case .structure(let pair) = entry, pair.count == 2, case .string(let name) = pair[0],
                case .variant(let value) = pair[1], entries.updateValue(value, forKey: name) == nil
            else { return nil }
        }
        return .dictionary(entries)
    }

    private func within(
        _ type: Unicode.Scalar, _ contents: String, _ budget: inout Budget, _ body: (inout Budget) -> BusValue?
    ) -> BusValue? {
        guard budget.depth > 0, sd_bus_message_enter_container(message, CChar(UInt8(ascii: type)), contents) > 0 else {
            return nil
        }
        budget.depth -= 1
        defer { budget.depth += 1 }
        guard let value = body(&budget), sd_bus_message_exit_container(message) >= 0 else { return nil }
        return value
    }

    private func basic<Value: BitwiseCopyable>(_ type: Unicode.Scalar, _ initial: Value) -> Value? {
        var value = initial
        return sd_bus_message_read_basic(message, CChar(UInt8(ascii: type)), &value) > 0 ? value : nil
    }

    private func text(_ type: Unicode.Scalar) -> UnsafePointer<CChar>? {
        basic(type, UnsafePointer<CChar>?.none) ?? nil
    }
}
