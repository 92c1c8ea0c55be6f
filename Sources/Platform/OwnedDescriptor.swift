// SPDX-License-Identifier: Apache-2.0

internal import CPlatform
internal import Glibc

/// A file descriptor that is closed exactly once: when its owner lets go of it, or earlier by ``close()``.
public struct OwnedDescriptor: ~Copyable, Sendable {
    /// The number, for system calls. Never store it beyond the owner's life: the kernel reuses numbers at once.
    public let number: CInt

    /// Takes over `number`; nobody else may close it from now on.
    public init(_ number: CInt) {
        self.number = number
    }

    deinit {
        // Linux has freed the number even when close(2) reports EINTR or EIO, so there is nothing to retry.
        _ = Glibc.close(number)
    }

    /// Closes now instead of at the end of the owner's scope.
    public consuming func close() {}

    /// Gives the descriptor up without closing it: the receiver closes it from now on.
    public consuming func release() -> CInt {
        let number = number
        discard self
        return number
    }

    /// An empty file in memory, with close-on-exec.
    ///
    /// - Parameter name: what `/proc/PID/fd` shows.
    public static func fileInMemory(_ name: String) throws(SystemError) -> OwnedDescriptor {
        let number = memfd_create(name, CUnsignedInt(MFD_CLOEXEC))
        if number < 0 { throw .last("making a file in memory") }
        return OwnedDescriptor(number)
    }

    /// A second descriptor for the same open file description, with close-on-exec.
    public borrowing func duplicate() throws(SystemError) -> OwnedDescriptor {
        OwnedDescriptor(try retryingInterrupts("duplicating a descriptor") { fcntl(number, F_DUPFD_CLOEXEC, 0) })
    }
}
