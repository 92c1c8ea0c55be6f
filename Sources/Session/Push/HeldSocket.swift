// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// A socket that was taken from the machine's agent: read as it comes, written as there is room.
@AgentQueue
final class HeldSocket {
    /// What becomes of a socket.
    enum Event {
        /// Bytes came.
        case received([UInt8])
        /// Everything was written.
        case drained
        /// It is over: the server ended it, or the kernel did.
        case ended
        /// The server reads nothing.
        case stuck
    }

    /// As much as one TLS record and a few of TCP's segments; more comes in the next turn.
    private static let readSize = 32 * 1024
    /// A thousand answers of push servers. A server that reads none of them has its socket given up.
    private static let mostUnwritten = 256 * 1024

    /// The number of the socket, to park it with.
    let epoch: Int
    private let descriptor: OwnedDescriptor
    private let handler: @AgentQueue (Event) -> Void
    private var registration: Poller.Registration?
    private var unwritten: [UInt8] = []

    /// Reads and writes from now on, until ``release()``.
    ///
    /// - Throws: what the kernel refuses.
    init(
        _ descriptor: consuming OwnedDescriptor, epoch: Int, _ handler: @escaping @AgentQueue (Event) -> Void
    ) throws(SystemError) {
        self.descriptor = descriptor
        self.epoch = epoch
        self.handler = handler
        setNonblocking(true)
        registration = try Poller.shared.register(self.descriptor.number, .readable) { [weak self] ready in
            self?.take(ready)
        }
    }

    /// Whether all that was sent has been written to the kernel.
    var isDrained: Bool { unwritten.isEmpty }

    /// Writes, now or when there is room.
    func send(_ bytes: [UInt8]) {
        guard registration != nil, !bytes.isEmpty else { return }
        unwritten += bytes
        write()
    }

    /// Reads and writes no more, and makes the socket as the agent wants it back: its reads wait. The descriptor is
    /// closed with this object.
    func release() {
        registration?.cancel()
        registration = nil
        setNonblocking(false)
    }

    private func setNonblocking(_ isOn: Bool) {
        // Neither call fails on a descriptor that is open.
        let flags = fcntl(descriptor.number, F_GETFL)
        guard flags >= 0 else { return }
        _ = fcntl(descriptor.number, F_SETFL, isOn ? flags | O_NONBLOCK : flags & ~O_NONBLOCK)
    }

    private func take(_ ready: Poller.Readiness) {
        if ready.contains(.writable) { write() }
        guard registration != nil, !ready.isDisjoint(with: [.readable, .hangUp, .error]) else { return }
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.readSize) { buffer, initialized in
            count = read(descriptor.number, buffer.baseAddress, buffer.count)
            initialized = max(0, count)
        }
        if count > 0 { return handler(.received(bytes)) }
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        end(.ended)
    }

    private func write() {
        while !unwritten.isEmpty {
            let count = unwritten.withUnsafeBytes {
                Glibc.send(descriptor.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { return end(.ended) }
                guard unwritten.count <= Self.mostUnwritten else { return end(.stuck) }
                registration?.update([.readable, .writable])
                return
            }
            unwritten.removeFirst(count)
        }
        registration?.update(.readable)
        handler(.drained)
    }

    private func end(_ event: Event) {
        guard registration != nil else { return }
        release()
        handler(event)
    }
}
