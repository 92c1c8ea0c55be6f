// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
package import DialtonePlatform
internal import DialtoneRelayMessages
internal import Glibc

/// `dialtone-tls` at work: one thread that accepts channels, and as many as the machine has processors that serve them.
package final class RelayServer: Sendable {
    /// How long there may be no flow before the process is over: a program's next dial is likely within that.
    private static let idleSeconds: CInt = 30

    private let census: FlowCensus

    /// Starts the threads that serve.
    ///
    /// - Throws: the kernel's refusal.
    package init(workers: Int) throws(SystemError) {
        census = try FlowCensus()
        let shared = RelayWorker.Shared(census: census)
        var sets: [CInt] = []
        for _ in 0..<max(workers, 1) {
            let set = try retryingInterrupts("creating an epoll set") { epoll_create1(CInt(EPOLL_CLOEXEC)) }
            try Self.start(RelayWorker(set, shared))
            sets.append(set)
        }
        self.sets = sets
    }

    private let sets: [CInt]

    /// Accepts flows on this thread until there has been none for a while; or, once `guardian` has a hang-up, goes on
    /// with those that there are, and accepts no more.
    ///
    /// - Parameters:
    ///   - listener: a Unix socket that keeps messages apart: a listening one, or one over which channels come.
    ///   - guardian: a pipe's end; -1 for none.
    package func serve(_ listener: consuming OwnedDescriptor, guardedBy guardian: CInt = -1) {
        let source = ChannelSource(listener)
        accept(from: source, until: guardian)
        source.close()
        while !census.isEmpty {
            var entry = pollfd(fd: census.number, events: Int16(POLLIN), revents: 0)
            poll(&entry, 1, -1)
            census.clear()
        }
    }

    private func accept(from source: borrowing ChannelSource, until guardian: CInt) {
        var next = 0
        while true {
            var entries = [source.number, census.number, guardian].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let isIdle = census.isEmpty
            let count = poll(&entries, nfds_t(entries.count), isIdle ? Self.idleSeconds * 1000 : -1)
            if (count == 0 && isIdle) || entries[2].revents != 0 { return }
            if entries[1].revents != 0 { census.clear() }
            guard entries[0].revents != 0 else { continue }
            let channel: CInt
            switch source.next() {
            case .channel(let number): channel = number
            case .nothing: continue
            case .shortage:
                // Of descriptors, until some flow ends; whoever waits is not turned away.
                usleep(Self.shortage)
                continue
            case .end: return
            }
            census.began()
            next = (next + 1) % sets.count
            var event = epoll_event()
            event.events = EPOLLIN.rawValue | EPOLLONESHOT.rawValue
            event.data.u64 = RelayWorker.token(ofChannel: channel)
            guard epoll_ctl(sets[next], EPOLL_CTL_ADD, channel, &event) != 0 else { continue }
            close(channel)
            census.ended()
        }
    }

    /// How long it waits where there are no descriptors, in microseconds.
    private static let shortage: UInt32 = 100_000

    /// Starts a thread that is the worker's alone.
    private static func start(_ worker: sending RelayWorker) throws(SystemError) {
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<RelayWorker>.fromOpaque(argument).takeRetainedValue().run()
            }, Unmanaged.passRetained(worker).toOpaque())
        if code != 0 { throw SystemError("starting a thread", code: code) }
        pthread_detach(thread)
    }
}

/// How many flows there are, over all threads.
final class FlowCensus: Sendable {
    /// Readable when the last one has ended.
    private let event: OwnedDescriptor
    private let count = Lock(0)

    init() throws(SystemError) {
        event = OwnedDescriptor(
            try retryingInterrupts("creating an event") { eventfd(0, CInt(EFD_CLOEXEC) | CInt(EFD_NONBLOCK)) })
    }

    var number: CInt { event.number }
    var isEmpty: Bool { count.withLock { $0 } == 0 }

    func began() { count.withLock { $0 += 1 } }

    func ended() {
        let isLast = count.withLock { count in
            count -= 1
            return count == 0
        }
        if isLast { eventfd_write(event.number, 1) }
    }

    func clear() {
        var value: eventfd_t = 0
        eventfd_read(event.number, &value)
    }
}

/// Where channels come from.
private struct ChannelSource: ~Copyable {
    enum Next {
        case channel(CInt)
        case nothing
        case shortage
        /// The agent, whose child this process is, has ended.
        case end
    }

    private let socket: MessageSocket
    private let isListening: Bool

    init(_ descriptor: consuming OwnedDescriptor) {
        isListening = descriptor.number.socketOption(SO_ACCEPTCONN) == 1
        socket = MessageSocket(descriptor)
    }

    var number: CInt { socket.number }

    borrowing func next() -> Next {
        if isListening {
            let channel = accept4(number, nil, nil, CInt(SOCK_CLOEXEC.rawValue))
            if channel >= 0 { return .channel(channel) }
            return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? .shortage : .nothing
        }
        switch socket.receive() {
        case .nothing: return .nothing
        case .end: return .end
        case .message(_, var descriptors):
            // One whose descriptor found no room: the agent reads the end of its channel.
            guard let channel = descriptors.takeFirst() else { return .nothing }
            return .channel(channel.release())
        }
    }

    consuming func close() {}
}
