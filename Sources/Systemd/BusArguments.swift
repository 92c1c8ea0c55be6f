// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSystemd

/// The arguments of a call, written one after the other; sd_bus_message_append_basic(3). For the length of a callback.
struct BusArguments {
    private let message: OpaquePointer

    init(_ message: OpaquePointer) { self.message = message }

    func string(_ text: String) {
        _ = text.withCString { sd_bus_message_append_basic(message, CChar(UInt8(ascii: "s")), $0) }
    }

    func boolean(_ value: Bool) { append("b", CInt(value ? 1 : 0)) }

    func uint32(_ number: UInt32) { append("u", number) }

    func uint64(_ number: UInt64) { append("t", number) }

    /// A descriptor; a duplicate of it rides along.
    func descriptor(_ number: CInt) { append("h", number) }

    func strings(_ texts: [String]) { array(of: "s") { for text in texts { string(text) } } }

    /// An array whose elements `body` writes.
    func array(of signature: String, _ body: () -> Void) { container("a", signature, body) }

    /// A structure whose members `body` writes.
    func structure(_ signature: String, _ body: () -> Void) { container("r", signature, body) }

    /// A name, and a value of this type, which `body` writes: an element of `a(sv)`.
    func property(_ name: String, _ type: String, _ body: () -> Void) {
        structure("sv") {
            string(name)
            container("v", type, body)
        }
    }

    private func append(_ type: Unicode.Scalar, _ value: some Any) {
        _ = withUnsafeBytes(of: value) {
            sd_bus_message_append_basic(message, CChar(UInt8(ascii: type)), $0.baseAddress)
        }
    }

    private func container(_ type: Unicode.Scalar, _ signature: String, _ body: () -> Void) {
        // What cannot be written leaves a message that the bus refuses: the call's answer is that error.
        guard sd_bus_message_open_container(message, CChar(UInt8(ascii: type)), signature) >= 0 else { return }
        body()
        sd_bus_message_close_container(message)
    }
}
