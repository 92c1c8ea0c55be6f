// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc

/// A file descriptor that is closed exactly once: when its owner lets go of it, or earlier by ``close()``.
///
/// A user who has or had a file can make its last `close(2)` wait: by a socket with `SO_LINGER` and
/// bytes that its peer does not take, by a file of a file system in user space, by either of them in the queue of a
/// Unix socket. So a descriptor of a file that a user has, had, or sent something into is made
/// `init(_:sharedWith:)`, and whatever becomes of it, it is that user's thread that closes it (`UserThreads`).
public struct OwnedDescriptor: ~Copyable, Sendable {
    /// The number, for system calls. Never store it beyond the owner's life: the kernel reuses numbers at once.
    public let number: CInt
    /// Who can make closing it wait; `nil` where nobody can.
    package let user: UInt32?

    /// The user of a file that somebody may have, and nobody knows who.
    package static let somebody = UInt32.max

    /// Takes over `number`; nobody else may close it from now on.
    public init(_ number: CInt) {
        (self.number, user) = (number, nil)
    }

    /// Takes over `number`, whose file `user` may have or may have had: it is closed on a thread of that user's.
    package init(_ number: CInt, sharedWith user: UInt32?) {
        (self.number, self.user) = (number, user)
    }

    deinit {
        if let user {
            UserThreads.close(number, for: user)
        } else {
            // Linux has freed the number even when close(2) reports EINTR or EIO, so there is nothing to retry.
            _ = Glibc.close(number)
        }
    }

    /// Closes now instead of at the end of the owner's scope.
    public consuming func close() {}

    /// Closes, and calls `completion` when it is closed: before this returns, unless the file is shared.
    @AgentQueue
    package consuming func close(_ completion: @escaping @Sendable @AgentQueue () -> Void) {
        let (number, user) = (number, user)
        discard self
        if let user { return UserThreads.close(number, for: user, completion) }
        _ = Glibc.close(number)
        completion()
    }

    /// Gives the descriptor up without closing it: the receiver closes it from now on.
    public consuming func release() -> CInt {
        let number = number
        discard self
        return number
    }

    /// The same descriptor, of a file that `user` is about to have.
    package consuming func shared(with user: UInt32) -> OwnedDescriptor { OwnedDescriptor(release(), sharedWith: user) }

    /// The same descriptor, of a file that nobody else has and that nobody sent anything into: its owner knows.
    package consuming func unshared() -> OwnedDescriptor { OwnedDescriptor(release()) }

    /// An empty file in memory, with close-on-exec.
    ///
    /// - Parameter name: what `/proc/PID/fd` shows.
    package static func fileInMemory(_ name: String) throws(SystemError) -> OwnedDescriptor {
        let number = memfd_create(name, CUnsignedInt(MFD_CLOEXEC))
        if number < 0 { throw .last("making a file in memory") }
        return OwnedDescriptor(number)
    }

    /// A second descriptor for the same open file description, with close-on-exec, shared as this one is.
    public borrowing func duplicate() throws(SystemError) -> OwnedDescriptor {
        OwnedDescriptor(
            try retryingInterrupts("duplicating a descriptor") { fcntl(number, F_DUPFD_CLOEXEC, 0) }, sharedWith: user)
    }
}
