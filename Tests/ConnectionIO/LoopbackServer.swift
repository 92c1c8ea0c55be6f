// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Dispatch
import Glibc

@testable import DialtoneConnectionIO

/// A listening socket on the loopback interface, and the server's ends of its connections.
struct LoopbackServer {
    let listener: LoopbackListener
    var endpoint: Endpoint { Endpoint(address: listener.address, port: listener.port) }

    init(_ address: IPAddress = .loopback, backlog: CInt? = 128, savesSYN: Bool = false) throws {
        listener = try LoopbackListener(address, backlog: backlog, savesSYN: savesSYN)
    }

    /// The next connection; waits for it where it is not there yet.
    func accept() throws -> Peer { Peer(descriptor: try listener.accept()) }
}

/// The server's end of a connection.
@AgentQueue
final class Peer {
    enum End: Equatable {
        case closed
        case reset
        case bytes(Int)
    }

    private var descriptor: OwnedDescriptor?
    private var registration: Poller.Registration?
    private var heard = ""

    nonisolated init(descriptor: consuming OwnedDescriptor) {
        self.descriptor = consume descriptor
    }

    private var number: CInt {
        switch descriptor {
        case .some(let descriptor): descriptor.number
        case .none: -1
        }
    }

    func send(_ text: String) {
        _ = Glibc.send(number, text, text.utf8.count, CInt(MSG_NOSIGNAL))
    }

    /// What the other side sent next.
    func receive() throws -> End {
        try wait(for: number, POLLIN)
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = recv(number, &buffer, buffer.count, 0)
        if count < 0 {
            guard errno == ECONNRESET else { throw SystemError.last("receiving") }
            return .reset
        }
        return count == 0 ? .closed : .bytes(count)
    }

    /// The network and transport headers of the first packet (tcp(7), `TCP_SAVED_SYN`).
    func savedSYN() throws -> [UInt8] {
        var headers = [UInt8](repeating: 0, count: 256)
        var length = socklen_t(headers.count)
        guard getsockopt(number, CInt(IPPROTO_TCP), TCP_SAVED_SYN, &headers, &length) == 0, length >= 40 else {
            throw SystemError.last("asking for the first packet")
        }
        return Array(headers.prefix(Int(length)))
    }

    /// Writes down what the other side sends from now on, while the test does something else.
    ///
    /// - Parameter length: of each of its messages. On a busy machine two of them may be read at once.
    func listen(toMessagesOf length: Int) throws -> Inbox<String> {
        let inbox = Inbox<String>()
        var told = 0
        registration = try Poller.shared.register(number, [.readable, .edgeTriggered]) { [weak self] _ in
            guard let self else { return }
            let heard = everything().utf8
            while heard.count >= told + length {
                inbox.put(String(decoding: heard.dropFirst(told).prefix(length), as: UTF8.self))
                told += length
            }
        }
        return inbox
    }

    /// Waits for the next message and answers it, on a thread of its own: at once, however busy the agent's queue is.
    func answer(messageOf length: Int, with text: String) async {
        let number = number
        await withCheckedContinuation { answered in
            DispatchQueue(label: "peer").async {
                var buffer = [UInt8](repeating: 0, count: length)
                _ = recv(number, &buffer, length, CInt(MSG_WAITALL))
                _ = Glibc.send(number, text, text.utf8.count, CInt(MSG_NOSIGNAL))
                answered.resume()
            }
        }
    }

    /// The next so many bytes of the other side, as soon as they have all come.
    func receive(_ count: Int) async throws -> [UInt8] {
        let arrivals = Inbox<Void>()
        let watch = try Poller.shared.register(number, .readable) { _ in arrivals.put(()) }
        defer { watch.cancel() }
        var bytes: [UInt8] = []
        while bytes.count < count, await arrivals.next() != nil {
            var buffer = [UInt8](repeating: 0, count: count - bytes.count)
            let got = recv(number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
            bytes += buffer.prefix(max(got, 0))
        }
        return bytes
    }

    /// All that the other side has sent by now. It is acknowledged when this returns.
    func everything() -> String {
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = recv(number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        heard += String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
        // The kernel would wait for something to send along for 40 ms, and in that time the other side sends nothing.
        var on: CInt = 1
        setsockopt(number, CInt(IPPROTO_TCP), TCP_QUICKACK, &on, socklen_t(MemoryLayout<CInt>.size))
        return heard
    }

    /// Loses every packet for this end from now on, as a line that is cut in the middle does: nothing is acknowledged.
    func loseEverything() throws {
        // A filter of one instruction (socket(7), SO_ATTACH_FILTER): BPF_RET of 0 bytes. By the layout of
        // linux/filter.h: code, jt, jf, k; and the length and the address of the program.
        var instruction: (UInt16, UInt8, UInt8, UInt32) = (0x06, 0, 0, 0)
        let number = number
        let result = withUnsafeMutablePointer(to: &instruction) { start in
            var program: (UInt16, UnsafeMutableRawPointer) = (1, UnsafeMutableRawPointer(start))
            let size = socklen_t(MemoryLayout.size(ofValue: program))
            return setsockopt(number, SOL_SOCKET, SO_ATTACH_FILTER, &program, size)
        }
        if result != 0 { throw SystemError.last("attaching a filter") }
    }

    /// Loses nothing any more.
    func loseNothing() throws {
        var ignored: CInt = 0
        let size = socklen_t(MemoryLayout.size(ofValue: ignored))
        let result = setsockopt(number, SOL_SOCKET, SO_DETACH_FILTER, &ignored, size)
        if result != 0 { throw SystemError.last("detaching a filter") }
    }

    /// Closes in order.
    func close() {
        registration?.cancel()
        registration = nil
        descriptor = nil
    }

    /// Closes with a reset.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
        close()
    }

    /// Says the end, and goes on listening.
    func finish() { shutdown(number, CInt(SHUT_WR)) }

    /// The address that the other side connected from.
    var remoteAddress: IPAddress? {
        var storage = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let number = number
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(number, $0, &length) }
        }
        return result == 0 ? IPAddress(v4: UInt32(bigEndian: storage.sin_addr.s_addr)) : nil
    }
}

/// Waits for readiness. The limit only makes a failure end; what is waited for is on its way in the kernel already.
private func wait(for descriptor: CInt, _ events: CInt) throws {
    var entry = pollfd(fd: descriptor, events: CShort(events), revents: 0)
    if poll(&entry, 1, 30_000) != 1 { throw SystemError("waiting for descriptor \(descriptor)", code: ETIMEDOUT) }
}

extension IPAddress {
    /// From TEST-NET-1 (RFC 5737), which no machine has.
    static let nobodys = IPAddress(v4: 0xC000_0201)
}
