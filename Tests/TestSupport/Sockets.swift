// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Two connected Unix sockets, for the caller to own.
package func socketPair(isBlocking: Bool = true) -> (CInt, CInt) {
    var ends: [CInt] = [-1, -1]
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | (isBlocking ? 0 : SOCK_NONBLOCK.rawValue)
    precondition(socketpair(AF_UNIX, CInt(kind), 0, &ends) == 0)
    return (ends[0], ends[1])
}

/// The number that the kernel has for a socket option.
package func option(_ descriptor: CInt?, _ level: CInt, _ name: CInt) -> CInt? {
    guard let descriptor else { return nil }
    var value: CInt = 0
    var length = socklen_t(MemoryLayout<CInt>.size)
    return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : nil
}
