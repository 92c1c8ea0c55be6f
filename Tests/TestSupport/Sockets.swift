// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// Two connected Unix sockets, for the caller to own.
package func socketPair(isBlocking: Bool = true) -> (CInt, CInt) {
    do {
        return try OwnedDescriptor.socketPair(isBlocking: isBlocking)
    } catch {
        preconditionFailure("\(error)")
    }
}

/// The number that the kernel has for a socket option.
package func option(_ descriptor: CInt?, _ level: CInt, _ name: CInt) -> CInt? {
    guard let descriptor else { return nil }
    var value: CInt = 0
    var length = socklen_t(MemoryLayout<CInt>.size)
    return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : nil
}
