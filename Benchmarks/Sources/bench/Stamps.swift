// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtonePlatform

/// When something happened, time after time: nanoseconds on `CLOCK_MONOTONIC`.
protocol Stamps: Sendable {
    var count: Int { get }
    subscript(index: Int) -> Int64 { get }
}

/// The stamps of a thread that blocks on a descriptor.
final class Stamper: Stamps {
    // A structure that lives as long as the process, and whose functions may be called from any thread.
    nonisolated(unsafe) let handle: OpaquePointer

    /// Starts the thread; it takes over the descriptor.
    ///
    /// - Parameter end: the byte that ends a message, for ``BENCH_MESSAGES``.
    convenience init(_ descriptor: consuming OwnedDescriptor, _ source: bench_source, end: Character = "\n") throws {
        try self.init(handle: bench_start_stamper(descriptor.release(), source, CChar(end.asciiValue ?? 0)))
    }

    /// One that counts connections to a listening socket as they are accepted, with an identity as they are secured.
    convenience init(accepting listener: consuming OwnedDescriptor, as identity: Identity?) throws {
        guard let identity else {
            try self.init(listener, BENCH_CONNECTIONS)
            return
        }
        try self.init(handle: bench_start_securing(listener.release(), identity.handle))
    }

    private init(handle: OpaquePointer?) throws {
        guard let handle else { throw SystemError("starting a thread", code: 11) }
        self.handle = handle
    }

    var count: Int { bench_stamp_count(handle) }

    subscript(index: Int) -> Int64 { bench_stamp(handle, index) }

    /// The bare reader of the calling thread's network namespace.
    static func bareReader() throws -> Stamper {
        try Stamper(opened("opening a netlink socket", bench_open_notices()), BENCH_NOTICES)
    }
}

/// The server's certificate and key, for as long as the process lives.
final class Identity: Sendable {
    // Nothing of it changes once it is made.
    nonisolated(unsafe) let handle: OpaquePointer

    /// Makes one for an address, and writes the certificate to `path`.
    init(_ address: String, savedTo path: String) throws {
        guard let handle = bench_make_identity(address, path) else {
            throw SystemError("making a certificate", code: 12)
        }
        self.handle = handle
    }
}

/// Stamps that callbacks make.
final class CallbackStamps: Stamps {
    private let stamps: Lock<[Int64]>

    init() {
        var room: [Int64] = []
        room.reserveCapacity(1 << 17)
        stamps = Lock(room)
    }

    func add() {
        let now = bench_now()
        stamps.withLock { $0.append(now) }
    }

    var count: Int { stamps.withLock { $0.count } }

    subscript(index: Int) -> Int64 { stamps.withLock { $0[index] } }
}

/// The descriptor that a call returned, or its error.
func opened(_ operation: String, _ number: CInt) throws -> OwnedDescriptor {
    guard number >= 0 else { throw SystemError.last(operation) }
    return OwnedDescriptor(number)
}

/// A socket of the server's, for whoever shares it.
final class OwnedEnd: Sendable {
    private let descriptor: OwnedDescriptor

    init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }

    var number: CInt { descriptor.number }

    /// The next connection to a listening one.
    func accept() throws -> OwnedEnd { OwnedEnd(try opened("accepting a connection", bench_accept(number))) }
}
