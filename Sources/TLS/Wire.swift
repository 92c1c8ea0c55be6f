// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneOpenSSL

/// The two ends of the wire as OpenSSL sees them: ciphertext that came and is not decrypted yet, ciphertext that is to
/// be sent.
///
/// A BIO of our own kind and not OpenSSL's memory BIO, which copies each byte once more and never gives memory back: a
/// session that is idle holds nothing here.
final class Wire {
    /// Ciphertext to be sent.
    private(set) var output: [UInt8] = []
    private var sent = 0
    /// Whether nothing more will come.
    var isEnded = false
    /// What came and OpenSSL has not asked for yet; read after it, the bytes of the call that runs.
    private var kept: [UInt8] = []
    private var taken = 0
    private var lent = UnsafeRawBufferPointer(start: nil, count: 0)

    /// How many bytes wait to be sent.
    var pendingOutput: Int { output.count - sent }

    /// A BIO that reads and writes here, for both directions of one session. The session frees it, before this.
    func makeBIO() -> OpaquePointer? {
        guard let method = wireMethod, let bio = BIO_new(method) else { return nil }
        // Unretained: the session owns both, and ends the BIO first.
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    /// Has `bytes` read while `body` runs; what is left afterwards is kept.
    func lend(_ bytes: UnsafeRawBufferPointer, while body: () -> Void) {
        lent = bytes
        body()
        kept.append(contentsOf: lent)
        lent = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Offers the bytes to be sent, and forgets as many as `write` says it took.
    func drain(_ write: (UnsafeRawBufferPointer) -> Int) {
        guard pendingOutput > 0 else { return }
        sent += output.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[sent...])) }
        // What send(2) took of it, which is no more than it was given.
        precondition(sent <= output.count, "no more can be taken than was offered")
        guard sent == output.count else { return }
        output = []
        sent = 0
    }

    /// Forgets what came, for a session that is over.
    func discardInput() {
        kept = []
        taken = 0
    }

    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var count = 0
        if taken < kept.count {
            count = min(buffer.count, kept.count - taken)
            kept.withUnsafeBytes {
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[taken..<taken + count]))
            }
            taken += count
            if taken == kept.count { discardInput() }
        } else if !lent.isEmpty {
            count = min(buffer.count, lent.count)
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: lent[..<count]))
            lent = UnsafeRawBufferPointer(rebasing: lent[count...])
        }
        return count
    }

    fileprivate func write(_ bytes: UnsafeRawBufferPointer) {
        output.append(contentsOf: bytes)
    }

    /// Whether there is nothing to read and nothing will come.
    fileprivate var isAtEnd: Bool { isEnded && taken == kept.count && lent.isEmpty }
}

/// The kind of BIO that a ``Wire`` is. `nil` when memory ran out.
///
/// Unsafe for the compiler alone: written once, here, and only read afterwards.
private nonisolated(unsafe) let wireMethod: OpaquePointer? = {
    guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire") else { return nil }
    BIO_meth_set_read(method, wireRead)
    BIO_meth_set_write(method, wireWrite)
    BIO_meth_set_ctrl(method, wireControl)
    return method
}()

private func wire(of bio: OpaquePointer?) -> Wire? {
    BIO_get_data(bio).map { Unmanaged<Wire>.fromOpaque($0).takeUnretainedValue() }
}

private func wireRead(_ bio: OpaquePointer?, _ buffer: UnsafeMutablePointer<CChar>?, _ count: CInt) -> CInt {
    guard let wire = wire(of: bio), let buffer, count > 0 else { return -1 }
    BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
    let read = wire.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: Int(count)))
    if read == 0, !wire.isEnded {
        BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
        return -1
    }
    return CInt(read)
}

private func wireWrite(_ bio: OpaquePointer?, _ bytes: UnsafePointer<CChar>?, _ count: CInt) -> CInt {
    guard let wire = wire(of: bio), let bytes, count >= 0 else { return -1 }
    wire.write(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    return count
}

private func wireControl(
    _ bio: OpaquePointer?, _ command: CInt, _ number: CLong, _ pointer: UnsafeMutableRawPointer?
) -> CLong {
    switch command {
    // All is written at once; OpenSSL flushes after each flight and takes 0 for a failure.
    case BIO_CTRL_FLUSH: 1
    case BIO_CTRL_EOF: wire(of: bio)?.isAtEnd == false ? 0 : 1
    default: 0
    }
}
