// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneSystemd
package import DialtonePlatform
internal import Glibc

/// The descriptors that the service manager passed at the start, sd_listen_fds(3): the sockets of socket units, and
/// what was left in the manager's store by the process before. Each has a name, and is taken by it.
///
/// What nobody has taken is closed with this value, so that a socket unit with a name the daemon does not know refuses
/// its clients instead of letting them hang in a queue that is never accepted from.
package struct PassedDescriptors: ~Copyable {
    var remaining: [(name: String, number: CInt)]

    /// Takes over all descriptors that were passed to this process, marks them close-on-exec and removes `$LISTEN_FDS`
    /// and its companions from the environment, for children must not take them for theirs.
    ///
    /// It changes the environment: call it once, at the start, before there is a second thread.
    ///
    /// - Throws: `EINVAL` when the variables make no sense.
    package static func receive() throws(SystemError) -> PassedDescriptors {
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        let count = sd_listen_fds_with_names(1, &names)
        guard count >= 0 else { throw SystemError("taking over the descriptors in $LISTEN_FDS", code: -count) }
        defer {
            for index in 0..<Int(count) { free(names?[index]) }
            free(names)
        }
        let remaining = (0..<count).map { index in
            (names?[Int(index)].map { String(cString: $0) } ?? "unknown", SD_LISTEN_FDS_START + index)
        }
        return PassedDescriptors(remaining: remaining)
    }

    /// The names of those that are left, in the order of the units.
    package var names: [String] { remaining.map(\.name) }

    /// The next descriptor of the name (`FileDescriptorName=` of the socket unit), as a listening Unix stream socket;
    /// `nil` when none of that name is left.
    ///
    /// - Throws: `ENOTSOCK` when it is something else; it is closed then.
    package mutating func takeUnixListener(named name: String) throws(SystemError) -> OwnedDescriptor? {
        guard let position = remaining.firstIndex(where: { $0.name == name }) else { return nil }
        let descriptor = OwnedDescriptor(remaining.remove(at: position).number)
        let isListener = sd_is_socket_unix(descriptor.number, CInt(SOCK_STREAM.rawValue), 1, nil, 0)
        guard isListener > 0 else {
            let operation = "taking descriptor \(descriptor.number), \"\(name)\", for a listening Unix stream socket"
            throw SystemError(operation, code: isListener < 0 ? -isListener : ENOTSOCK)
        }
        return descriptor
    }

    /// The next descriptor of the name, whatever it is; `nil` when none of that name is left. For what an earlier
    /// process of this service stored (``ServiceManager/store(_:as:)``).
    package mutating func takeStored(named name: String) -> OwnedDescriptor? {
        guard let position = remaining.firstIndex(where: { $0.name == name }) else { return nil }
        return OwnedDescriptor(remaining.remove(at: position).number)
    }

    deinit {
        for (_, number) in remaining { close(number) }
    }
}
