// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneBus
internal import Glibc

/// The arguments of a call or of an answer, written one after the other; sd_bus_message_append_basic(3). For the length
/// of a callback.
package final class BusArguments {
    private let message: OpaquePointer
    /// Whether something could not be written: a path that is none, a value without a type to send.
    private(set) var isBroken = false

    init(_ message: OpaquePointer) { self.message = message }

    /// Writes a text, `s`. It ends at a NUL, which D-Bus's texts cannot hold.
    package func string(_ text: String) { append("s", text: text) }

    /// Writes a `b`.
    package func boolean(_ value: Bool) { append("b", CInt(value ? 1 : 0)) }

    /// Writes a `u`.
    package func uint32(_ number: UInt32) { append("u", number) }

    /// Writes a `t`.
    package func uint64(_ number: UInt64) { append("t", number) }

    /// Writes a descriptor, `h`; a duplicate of it rides along.
    package func descriptor(_ number: CInt) { append("h", number) }

    /// Writes an `as`.
    package func strings(_ texts: [String]) { array(of: "s") { for text in texts { string(text) } } }

    /// An array whose elements `body` writes.
    package func array(of signature: String, _ body: () -> Void) { container("a", signature, body) }

    /// A structure whose members `body` writes.
    package func structure(_ signature: String, _ body: () -> Void) { container("r", signature, body) }

    /// A name, and a value of this type, which `body` writes: an element of `a(sv)`.
    package func property(_ name: String, _ type: String, _ body: () -> Void) {
        structure("sv") {
            string(name)
            container("v", type, body)
        }
    }

    /// Writes a value of any type.
    package func value(_ value: BusValue) {
        switch value {
        case .string(let text): append("s", text: text)
        case .path(let text): append("o", text: text)
        case .boolean(let value): boolean(value)
        case .byte(let number): append("y", number)
        case .int32(let number): append("i", number)
        case .uint32(let number): uint32(number)
        case .int64(let number): append("x", number)
        case .uint64(let number): uint64(number)
        case .double(let number): append("d", number)
        case .bytes(let bytes):
            // A null pointer is one too many even where there is nothing behind it.
            let result = bytes.withUnsafeBytes {
                sd_bus_message_append_array(message, CChar(UInt8(ascii: "y")), $0.baseAddress, $0.count)
            }
            if result < 0 { isBroken = true }
        case .array(let type, let elements): array(of: type) { for element in elements { self.value(element) } }
        case .dictionary(let entries):
            array(of: "{sv}") {
                // In one order, so that equal values are equal messages.
                for (name, value) in entries.sorted(by: { $0.key < $1.key }) {
                    container("e", "sv") {
                        string(name)
                        container("v", value.signature) { self.value(value) }
                    }
                }
            }
        case .structure(let members):
            structure(members.map(\.signature).joined()) { for member in members { self.value(member) } }
        case .variant(let value): container("v", value.signature) { self.value(value) }
        case .other: isBroken = true
        }
    }

    private func append(_ type: Unicode.Scalar, text: String) {
        let result = text.withCString { sd_bus_message_append_basic(message, CChar(UInt8(ascii: type)), $0) }
        if result < 0 { isBroken = true }
    }

    private func append(_ type: Unicode.Scalar, _ value: some BitwiseCopyable) {
        let result = withUnsafeBytes(of: value) {
            sd_bus_message_append_basic(message, CChar(UInt8(ascii: type)), $0.baseAddress)
        }
        if result < 0 { isBroken = true }
    }

    private func container(_ type: Unicode.Scalar, _ signature: String, _ body: () -> Void) {
        guard sd_bus_message_open_container(message, CChar(UInt8(ascii: type)), signature) >= 0 else {
            return isBroken = true
        }
        body()
        if sd_bus_message_close_container(message) < 0 { isBroken = true }
    }
}
