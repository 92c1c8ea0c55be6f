// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnectionIO
package import DialtonePlatform
internal import DialtoneRelayMessages
internal import DialtoneTLSRelay
internal import Glibc

/// `dialtone-tls` as threads of this process.
package final class TestRelay: Sendable {
    /// The one that tests share which do nothing to it.
    package static let shared = TestRelay()

    private let control: CInt

    /// Starts it.
    package init(workers: Int = 2) {
        let (ours, theirs): (CInt, CInt)
        do {
            (ours, theirs) = try Self.pair()
        } catch {
            preconditionFailure("\(error)")
        }
        control = ours
        let thread = Thread {
            // A test machine has memory for two threads.
            (try? RelayServer(workers: workers))?.serve(OwnedDescriptor(theirs))
        }
        thread.start()
    }

    deinit { close(control) }

    private static func pair() throws(SystemError) -> (CInt, CInt) {
        try OwnedDescriptor.socketPair(keepingMessagesApart: true)
    }

    /// A new channel to it.
    package func connect() throws(SystemError) -> OwnedDescriptor {
        let (ours, theirs) = try Self.pair()
        defer { close(theirs) }
        let byte: [UInt8] = [0]
        let socket = MessageSocket(OwnedDescriptor(dup(control)))
        while true {
            do throws(SystemError) {
                try socket.send(byte, [theirs])
                return OwnedDescriptor(ours)
            } catch {
                guard error.code == EAGAIN else { throw error }
                // It has enough to do.
                var entry = pollfd(fd: socket.number, events: Int16(POLLOUT), revents: 0)
                poll(&entry, 1, -1)
            }
        }
    }
}

private final class Thread: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    func start() {
        var thread = pthread_t()
        let argument = Unmanaged.passRetained(self).toOpaque()
        pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Thread>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, argument)
        pthread_detach(thread)
    }
}

extension RelayAccess {
    /// `dialtone-tls` as threads of this process.
    @AgentQueue package static let test = RelayAccess { () throws(SystemError) in
        RelayAccess.Channel(try TestRelay.shared.connect(), outlivesAgent: true)
    }
}
