// SPDX-License-Identifier: Apache-2.0

internal import Glibc

// What the kernel says of a socket, and is told of it, by its number.

extension CInt {
    /// An integer option of the socket with this number (getsockopt(2)), by default one of all sockets (socket(7));
    /// `nil` if it is no socket, or the kernel knows no such option.
    package func socketOption(_ name: CInt, at level: CInt = SOL_SOCKET) -> CInt? {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout.size(ofValue: value))
        return getsockopt(self, level, name, &value, &length) == 0 ? value : nil
    }

    /// Sets an integer option of the socket with this number (setsockopt(2)), by default one of all sockets.
    ///
    /// - Returns: whether the kernel took it; `errno` says why not.
    @discardableResult
    package func setSocketOption(_ name: CInt, at level: CInt = SOL_SOCKET, to value: CInt) -> Bool {
        var value = value
        return setsockopt(self, level, name, &value, socklen_t(MemoryLayout.size(ofValue: value))) == 0
    }

    /// The error that the kernel holds for the socket with this number, if any; asking for it clears it (`SO_ERROR`).
    package var pendingError: CInt? { socketOption(SO_ERROR).flatMap { $0 == 0 ? nil : $0 } }

    /// How many bytes have come and were not read (`FIONREAD`); `nil` where the kernel does not say.
    package var unreadBytes: Int? {
        var count: CInt = 0
        return ioctl(self, UInt(FIONREAD), &count) == 0 ? Int(count) : nil
    }
}
