// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import NetworkPath
import Synchronization

/// A DNS server on one loopback address, UDP and TCP on the same port, that answers as a test tells it to.
final class NameServerStub: Sendable {
    /// What was asked: a name in lower case without the final dot, and a record type.
    struct Question: Hashable, CustomStringConvertible {
        var name: String
        var type: UInt16
        var description: String { "\(name) \(type == 1 ? "A" : type == 28 ? "AAAA" : "TYPE\(type)")" }
    }

    enum Reply {
        /// Addresses of the family that was asked for, with a time to live in seconds.
        case addresses([IPAddress], ttl: UInt32)
        /// An alias with its own time to live, and the addresses behind it.
        case alias(String, aliasTTL: UInt32, [IPAddress], ttl: UInt32)
        /// No error and no record.
        case empty
        /// A response code: 2 is SERVFAIL, 3 NXDOMAIN, 5 REFUSED.
        case code(UInt8)
        /// No packet at all.
        case silence
        /// "Ask again over TCP", and there this.
        indirect case truncated(Reply)
    }

    let port: UInt16
    private let udp: CInt
    private let tcp: CInt
    private let queue = DispatchQueue(label: "name server stub")
    // Written in the initialiser alone; Dispatch's own objects may be used from any thread.
    nonisolated(unsafe) private let sources: [any DispatchSourceRead]
    private let reply: @Sendable (Question) -> Reply
    private let log = Mutex<[Question]>([])
    private let senders = Mutex<[String: Set<UInt16>]>([:])

    /// Listens on `address`; port 0 takes any that is free for both protocols.
    init(_ address: String = "127.0.0.1", port: UInt16 = 0, reply: @escaping @Sendable (Question) -> Reply) {
        self.reply = reply
        (udp, tcp, self.port) = Self.open(address, port)
        sources = [udp, tcp].map { [queue] in DispatchSource.makeReadSource(fileDescriptor: $0, queue: queue) }
        sources[0].setEventHandler { [unowned self] in serveDatagram() }
        sources[1].setEventHandler { [unowned self] in serveStream() }
        for source in sources { source.activate() }
    }

    /// Every question that came, in order.
    var questions: [Question] { log.withLock { $0 } }

    /// The ports that a name was asked for from, over UDP: one for each socket, however often it repeated the question.
    func ports(askingFor name: String) -> Set<UInt16> {
        senders.withLock { $0[name] ?? [] }
    }

    /// Stops listening; the port then refuses.
    func stop() {
        for (source, descriptor) in zip(sources, [udp, tcp]) where !source.isCancelled {
            source.setCancelHandler { close(descriptor) }
            source.cancel()
        }
        queue.sync {}
    }

    deinit { stop() }

    private static func open(_ address: String, _ port: UInt16) -> (udp: CInt, tcp: CInt, port: UInt16) {
        // A port that is free for UDP may be taken for TCP; a few draws find one that is free for both.
        for _ in 0..<20 {
            let udp = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
            let tcp = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = inet_addr(address)
            if bind(udp, to: &name), bind(tcp, to: &name), listen(tcp, 8) == 0 {
                return (udp, tcp, UInt16(bigEndian: name.sin_port))
            }
            close(udp)
            close(tcp)
        }
        fatalError("no free port on \(address)")
    }

    /// Binds and reads the name back, with the port that the kernel chose.
    private static func bind(_ descriptor: CInt, to name: inout sockaddr_in) -> Bool {
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
    }

    private func serveDatagram() {
        var packet = [UInt8](repeating: 0, count: 512)
        var peer = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutablePointer(to: &peer) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { peer in
                let count = recvfrom(udp, &packet, packet.count, 0, peer, &length)
                let port = peer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt16(bigEndian: $0.pointee.sin_port)
                }
                guard count > 0, let response = respond(to: Array(packet.prefix(count)), fromUDP: port) else { return }
                sendto(udp, response, response.count, 0, peer, length)
            }
        }
    }

    private func serveStream() {
        let peer = accept(tcp, nil, nil)
        defer { close(peer) }
        var packet = [UInt8](repeating: 0, count: 514)
        let count = recv(peer, &packet, packet.count, 0)
        guard count > 2, let response = respond(to: Array(packet[2..<count]), fromUDP: nil) else { return }
        let framed = bigEndian(UInt16(response.count)) + response
        send(peer, framed, framed.count, CInt(MSG_NOSIGNAL))
    }

    private func respond(to packet: [UInt8], fromUDP port: UInt16?) -> [UInt8]? {
        var position = 12
        var labels: [String] = []
        while packet[position] != 0 {
            let end = position + 1 + Int(packet[position])
            labels.append(String(decoding: packet[position + 1..<end], as: UTF8.self).lowercased())
            position = end
        }
        let type = UInt16(packet[position + 1]) << 8 | UInt16(packet[position + 2])
        let question = Question(name: labels.joined(separator: "."), type: type)
        log.withLock { $0.append(question) }
        if let port { senders.withLock { _ = $0[question.name, default: []].insert(port) } }
        let asked = Array(packet[12..<position + 5])
        return response(packet, asked, reply(question), type, port == nil)
    }

    private func response(
        _ packet: [UInt8], _ asked: [UInt8], _ reply: Reply, _ type: UInt16, _ overTCP: Bool
    ) -> [UInt8]? {
        func message(code: UInt8 = 0, truncated: Bool = false, _ records: [[UInt8]] = []) -> [UInt8] {
            let flags: [UInt8] = [0x81 | (truncated ? 2 : 0), 0x80 | code]
            return packet[0..<2] + flags + [0, 1] + bigEndian(UInt16(records.count)) + [0, 0, 0, 0] + asked
                + records.joined()
        }
        switch reply {
        case .addresses(let addresses, let ttl):
            return message(addresses.map { record([0xC0, 12], type, ttl, $0.bytes) })
        case .alias(let name, let aliasTTL, let addresses, let ttl):
            let labels: [[UInt8]] = name.split(separator: ".").map { [UInt8($0.utf8.count)] + Array($0.utf8) }
            let target = Array(labels.joined()) + [0]
            let alias = record([0xC0, 12], 5, aliasTTL, target)
            return message([alias] + addresses.map { record(target, type, ttl, $0.bytes) })
        case .empty: return message()
        case .code(let code): return message(code: code)
        case .silence: return nil
        case .truncated(let full):
            return overTCP ? response(packet, asked, full, type, true) : message(truncated: true)
        }
    }

    private func record(_ name: [UInt8], _ type: UInt16, _ ttl: UInt32, _ data: [UInt8]) -> [UInt8] {
        name + bigEndian(type) + [0, 1] + bigEndian(ttl) + bigEndian(UInt16(data.count)) + data
    }

    private func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}
