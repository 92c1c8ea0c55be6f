// SPDX-License-Identifier: Apache-2.0

/// Bytes of which some bits may be anything.
package struct BytePattern: Hashable, Sendable {
    private let bytes: [UInt8]
    /// The bits that count; as long as `bytes`, which have no others.
    private let mask: [UInt8]

    /// Exactly these bytes.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
        mask = [UInt8](repeating: 0xFF, count: bytes.count)
    }

    /// These bytes as far as the mask has bits, and any others elsewhere. What one of the two has beyond the other's
    /// end is left out.
    package init(_ bytes: [UInt8], mask: [UInt8]) {
        self.bytes = zip(bytes, mask).map { $0 & $1 }
        self.mask = Array(mask.prefix(self.bytes.count))
    }

    /// How many bytes it is about.
    package var count: Int { bytes.count }

    /// Whether it says nothing but how long it is.
    package var isFree: Bool { mask.allSatisfy { $0 == 0 } }

    /// Whether `input` begins with it, as far as `input` goes.
    func agrees(with input: ArraySlice<UInt8>) -> Bool {
        zip(input, zip(bytes, mask)).allSatisfy { byte, expected in byte & expected.1 == expected.0 }
    }

    /// Whether `input` begins with all of it.
    func begins(_ input: ArraySlice<UInt8>) -> Bool { input.count >= count && agrees(with: input) }
}

extension BytePattern: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How long it is. What it holds may be a secret.
    package var description: String { "\(count) bytes" }
    /// The same.
    package var debugDescription: String { description }
    /// The same.
    package var customMirror: Mirror { Mirror(self, children: ["count": count]) }
}
