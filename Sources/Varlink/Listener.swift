// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DialtonePlatform
internal import Glibc

/// One listening socket of a server.
@AgentQueue
final class Listener {
    private let socket: OwnedDescriptor
    private var file: SocketFile?
    private var registration: Poller.Registration?
    private var pause: Timers.Timer?

    /// Takes over a listening socket and, if this process made it, its name in the file system.
    init(_ socket: consuming OwnedDescriptor, file: consuming SocketFile?) {
        self.socket = socket
        self.file = file
    }

    /// Calls `handler` whenever a client waits.
    func watch(_ handler: @escaping @AgentQueue () -> Void) throws(SystemError) {
        // The timer that a pause needs is a descriptor as well: it must be there before they run out.
        _ = Timers.shared
        registration = try Poller.shared.register(socket.number, .readable) { _ in handler() }
    }

    /// The next client that waits; `nil` when none does.
    func accept() throws(SystemError) -> OwnedDescriptor? {
        while true {
            let number = accept4(
                socket.number, nil, nil, CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue))
            // Until its client is known.
            if number >= 0 { return OwnedDescriptor(number, sharedWith: OwnedDescriptor.somebody) }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EAGAIN: return nil
            default: throw .last("accepting a client")
            }
        }
    }

    /// Leaves the clients waiting for a while.
    func pause(for duration: Duration) {
        registration?.update([])
        pause = Timers.shared.schedule(after: duration) { [weak self] in self?.registration?.update(.readable) }
    }

    /// Stops listening and removes the name.
    func close() {
        pause?.cancel()
        registration?.cancel()
        registration = nil
        file.take()?.remove()
    }
}
