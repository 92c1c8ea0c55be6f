// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneVarlink

/// A client that is no part of the project: blocking reads and writes of bytes.
final class RawClient: Sendable {
    let number: CInt
    /// Where reads block: not on the threads that all tests share.
    private let queue = DispatchQueue(label: "client")
    private nonisolated(unsafe) var pending: [UInt8] = []  // only on `queue`
    private nonisolated(unsafe) var descriptors: [CInt] = []  // only on `queue`

    init(_ socket: consuming OwnedDescriptor) {
        number = socket.release()
        _ = fcntl(number, F_SETFL, 0)
        // Only so that a test that has failed ends.
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout.size(ofValue: limit)))
    }

    deinit { _ = Glibc.close(number) }

    func closeNow() { shutdown(number, CInt(SHUT_RDWR)) }

    @discardableResult
    func send(bytes: [UInt8]) -> Int {
        bytes.withUnsafeBytes { Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
    }

    func send(_ messages: String...) {
        send(bytes: messages.flatMap { Array($0.utf8) + [0] })
    }

    /// Sends a message, or a part of one, with descriptors riding on its first byte, and closes them on this side. The
    /// layout is that of `cmsg(3)` on 64-bit Linux.
    func send(part bytes: [UInt8], passing descriptors: [CInt]) {
        var bytes = bytes
        var control = [UInt64](repeating: 0, count: 2 + (descriptors.count + 1) / 2)
        control.withUnsafeMutableBytes { control in
            control.storeBytes(of: UInt64(16 + 4 * descriptors.count), as: UInt64.self)
            control.storeBytes(of: CInt(SOL_SOCKET), toByteOffset: 8, as: CInt.self)
            control.storeBytes(of: CInt(SCM_RIGHTS), toByteOffset: 12, as: CInt.self)
            for (place, descriptor) in descriptors.enumerated() {
                control.storeBytes(of: descriptor, toByteOffset: 16 + 4 * place, as: CInt.self)
            }
            bytes.withUnsafeMutableBytes { bytes in
                var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                var header = msghdr()
                withUnsafeMutablePointer(to: &vector) {
                    header.msg_iov = $0
                    header.msg_iovlen = 1
                    header.msg_control = control.baseAddress
                    header.msg_controllen = control.count
                    #expect(sendmsg(number, &header, CInt(MSG_NOSIGNAL)) == bytes.count)
                }
            }
        }
        for descriptor in descriptors { Glibc.close(descriptor) }
    }

    func send(_ message: String, passing descriptors: [CInt]) {
        send(part: Array(message.utf8) + [0], passing: descriptors)
    }

    /// The next message; `nil` at the end of the stream, and after a reset.
    func receive() async -> String? {
        let (message, code) = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: self.receiveBlocking()) }
        }
        if code == EAGAIN { Issue.record("nothing came") }
        return message
    }

    /// What rode on the messages received so far, for the caller to close.
    func takeDescriptors() -> [CInt] {
        queue.sync {
            defer { descriptors = [] }
            return descriptors
        }
    }

    private func receiveBlocking() -> (String?, CInt) {
        while true {
            if let end = pending.firstIndex(of: 0) {
                let message = String(decoding: pending[..<end], as: UTF8.self)
                pending.removeFirst(end + 1)
                return (message, 0)
            }
            var buffer = [UInt8](repeating: 0, count: 65536)
            let count = receiveOnce(&buffer)
            guard count > 0 else { return (nil, count < 0 ? errno : 0) }
            pending += buffer.prefix(count)
        }
    }

    private func receiveOnce(_ buffer: inout [UInt8]) -> Int {
        var control = [UInt64](repeating: 0, count: 10)
        return control.withUnsafeMutableBytes { control in
            buffer.withUnsafeMutableBytes { bytes in
                var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                var header = msghdr()
                let count = withUnsafeMutablePointer(to: &vector) {
                    header.msg_iov = $0
                    header.msg_iovlen = 1
                    header.msg_control = control.baseAddress
                    header.msg_controllen = control.count
                    return recvmsg(number, &header, CInt(MSG_CMSG_CLOEXEC))
                }
                guard count >= 0, header.msg_controllen >= 16 else { return count }
                let end = Int(control.load(as: UInt64.self))
                for offset in stride(from: 16, to: end, by: 4) {
                    descriptors.append(control.load(fromByteOffset: offset, as: CInt.self))
                }
                return count
            }
        }
    }
}

/// A service with a method of each kind, and what its handlers saw.
@AgentQueue
final class TestService {
    /// Counts up to a limit that the test raises.
    final class Counter: VarlinkSubscription {
        let stream: VarlinkStream
        let end: Int?
        private(set) var asked = 0
        private(set) var endings = 0
        private(set) var number = 0
        var available = 0 {
            didSet { stream.wake() }
        }

        init(stream: VarlinkStream, end: Int?) {
            self.stream = stream
            self.end = end
            if let end { available = end }
        }

        func next() -> VarlinkMessage? {
            asked += 1
            guard number < available else { return nil }
            number += 1
            return .reply(TestAPI.Count.Reply(number: number), continues: number != end)
        }

        func ended() { endings += 1 }
    }

    let service = VarlinkService(vendor: "Dialtone", product: "Test", version: "1", url: "https://example.org")
    let server: VarlinkServer
    private(set) var pings: [String] = []
    var exchanges: [VarlinkExchange<TestAPI.Later>] = []
    private(set) var counters: [Counter] = []
    private(set) var incidents: [VarlinkServer.Incident] = []
    /// What `Later` throws after it has kept nothing.
    var laterThrows = false

    init(limits: VarlinkServer.Limits = .init()) {
        server = VarlinkServer(service, limits: limits)
        server.onIncident = { [weak self] incident, _ in self?.incidents.append(incident) }
        service.add(interface: TestAPI.name, description: TestAPI.description)
        service.handle(TestAPI.Ping.self) { [weak self] parameters, _ in
            self?.pings.append(parameters.text)
            return TestAPI.Ping.Reply(text: parameters.text)
        }
        service.handleLater(TestAPI.Later.self) { [weak self] _, exchange throws(VarlinkFailure) in
            guard let self else { return }
            if laterThrows { throw VarlinkFailure(TestAPI.Refused(uid: Int(exchange.peer.uid))) }
            exchanges.append(exchange)
        }
        service.handle(TestAPI.Refuse.self) { _, peer throws(VarlinkFailure) in
            throw VarlinkFailure(TestAPI.Refused(uid: Int(peer.uid)))
        }
        service.handleStream(TestAPI.Count.self) { [weak self] parameters, stream throws(VarlinkFailure) in
            let counter = Counter(stream: stream, end: parameters.to)
            self?.counters.append(counter)
            return counter
        }
    }

    /// A client of this service over a socket pair.
    func client() throws -> RawClient {
        let (ours, theirs) = socketPair()
        try server.serve(OwnedDescriptor(ours))
        return RawClient(OwnedDescriptor(theirs))
    }

    /// Likewise, of another user as far as the server knows.
    func client(of user: UInt32) throws -> RawClient {
        let (ours, theirs) = socketPair()
        try server.serve(OwnedDescriptor(ours), for: VarlinkPeer(uid: user, gid: user, pid: getpid()))
        return RawClient(OwnedDescriptor(theirs))
    }
}

func ping(_ text: String, _ flags: String = "") -> String {
    #"{"method":"org.example.Test.Ping","parameters":{"text":"\#(text)"}\#(flags)}"#
}

func call(_ method: String, _ flags: String = "") -> String {
    #"{"method":"org.example.Test.\#(method)"\#(flags)}"#
}

func pong(_ text: String) -> String { #"{"parameters":{"text":"\#(text)"}}"# }

func failure(_ name: String, _ parameters: String) -> String {
    #"{"error":"\#(name)","parameters":{\#(parameters)}}"#
}
