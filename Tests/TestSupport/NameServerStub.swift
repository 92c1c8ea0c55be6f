// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath
import DialtonePlatform
import Glibc

/// A DNS server on one address, UDP and TCP on the same port, that answers as a test tells it to. It has a thread of
/// its own and needs nothing else: it can be started on a thread of a Lab's namespace, and serves there.
package final class NameServerStub: Sendable {
    /// What was asked: a name in lower case without the final dot, and a record type.
    package struct Question: Hashable, Sendable, CustomStringConvertible {
        /// The name.
        package var name: String
        /// The type: 1 is A, 28 AAAA, 33 SRV, 35 NAPTR.
        package var type: UInt16

        /// Whether it asks for IPv4 addresses.
        package var isForV4: Bool { type == 1 }

        /// "example.com AAAA".
        package var description: String {
            "\(name) \([1: "A", 28: "AAAA", 33: "SRV", 35: "NAPTR"][type] ?? "TYPE\(type)")"
        }
    }

    /// What it says.
    package enum Reply: Sendable {
        /// Addresses of the family that was asked for, with a time to live in seconds.
        case addresses([IPAddress], ttl: UInt32)
        /// Aliases one behind the other, each with its time to live, and the addresses behind the last.
        case aliases([(name: String, ttl: UInt32)], [IPAddress], ttl: UInt32)
        /// Records of any type.
        case records([Record])
        /// No error and no record.
        case empty
        /// A response code: 2 is SERVFAIL, 3 NXDOMAIN, 5 REFUSED.
        case code(UInt8)
        /// A response code, and the authority for it: its time to live, and the minimum in it.
        case negative(UInt8, ttl: UInt32, minimum: UInt32)
        /// No packet at all.
        case silence
        /// This, when the test calls ``NameServerStub/releaseHeld()``.
        indirect case held(Reply)
        /// "Ask again over TCP", and there this.
        indirect case truncated(Reply)
    }

    /// A record of the Internet's class in an answer.
    package struct Record: Sendable {
        /// The name that it belongs to; `nil` for the one that was asked for.
        package var owner: String?
        /// The type.
        package var type: UInt16
        /// The time to live in seconds.
        package var ttl: UInt32
        /// What it says, in its wire form. A pointer to octet 12 is one to the name that was asked for.
        package var data: [UInt8]

        /// A record.
        package init(_ type: UInt16, _ data: [UInt8], owner: String? = nil, ttl: UInt32 = 60) {
            self.owner = owner
            self.type = type
            self.ttl = ttl
            self.data = data
        }

        /// An alias of the name that was asked for.
        package static func alias(_ target: String) -> Record { Record(5, wireName(target)) }

        /// A host of a service (SRV); "." says that there is none.
        package static func service(
            _ priority: UInt16, _ weight: UInt16, _ port: UInt16, _ target: String, owner: String? = nil
        ) -> Record {
            Record(33, [priority, weight, port].flatMap { bigEndian($0) } + wireName(target), owner: owner)
        }

        /// A rule (NAPTR).
        package static func rule(
            _ order: UInt16, _ preference: UInt16, _ flags: String, _ service: String, _ regexp: String,
            _ replacement: String
        ) -> Record {
            let strings = [flags, service, regexp].flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
            return Record(35, [order, preference].flatMap { bigEndian($0) } + strings + wireName(replacement))
        }
    }

    /// Its port.
    package let port: UInt16
    private let core: Core
    private let thread: Lock<pthread_t?>

    /// Listens on `address`; port 0 takes any that is free for both protocols.
    package init(_ address: String = "127.0.0.1", port: UInt16 = 0, reply: @escaping @Sendable (Question) -> Reply) {
        let (udp, tcp, port) = Self.open(address, port)
        self.port = port
        core = Core(udp: udp, tcp: tcp, reply: reply)
        var started = pthread_t()
        let code = pthread_create(&started, nil, serve, Unmanaged.passRetained(core).toOpaque())
        precondition(code == 0, "starting a name server's thread: \(code)")
        thread = Lock(started)
    }

    /// Every question that came, in order.
    package var questions: [Question] { core.state.withLock { $0.questions } }

    /// The same without repeats: on a busy machine an answer comes late, and is asked for again meanwhile.
    package var asked: [Question] { core.state.withLock { $0.asked } }

    /// The ports that a name was asked for from, over UDP: one for each socket, however often it repeated the question.
    package func ports(askingFor name: String) -> Set<UInt16> {
        core.state.withLock { $0.senders[name] ?? [] }
    }

    /// Sends what was held back.
    package func releaseHeld() {
        let held = core.state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
        for (response, peer) in held { core.send(response, to: peer) }
    }

    /// Stops listening; the port refuses when this returns.
    package func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        core.wake()
        pthread_join(thread, nil)
        core.closeSockets()
    }

    deinit { stop() }

    private static func open(_ address: String, _ port: UInt16) -> (udp: CInt, tcp: CInt, port: UInt16) {
        // A port that is free for UDP may be taken for TCP; a few draws find one that is free for both.
        for _ in 0..<20 {
            let udp = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
            let tcp = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = inet_addr(address)
            // A server that is started again on its port must not wait for the last one's streams.
            var yes: CInt = 1
            setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<CInt>.size))
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
}

private func serve(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { Unmanaged<Core>.fromOpaque(argument).takeRetainedValue().serve() }
    return nil
}

/// What the thread serves with.
private final class Core: Sendable {
    struct State {
        var questions: [NameServerStub.Question] = []
        var asked: [NameServerStub.Question] = []
        /// The messages that asked, by their identifiers and the sender's port.
        var messages: Set<[UInt8]> = []
        var senders: [String: Set<UInt16>] = [:]
        var held: [(response: [UInt8], peer: sockaddr_in)] = []
    }

    let state = Lock(State())
    private let udp: CInt
    private let tcp: CInt
    /// A pipe, readable from the end of the service on.
    private let end: (read: CInt, write: CInt)
    private let reply: @Sendable (NameServerStub.Question) -> NameServerStub.Reply

    init(udp: CInt, tcp: CInt, reply: @escaping @Sendable (NameServerStub.Question) -> NameServerStub.Reply) {
        self.udp = udp
        self.tcp = tcp
        self.reply = reply
        var ends: [CInt] = [0, 0]
        precondition(pipe(&ends) == 0, "making a pipe: \(errno)")
        end = (ends[0], ends[1])
    }

    deinit {
        close(end.read)
        close(end.write)
    }

    func wake() { _ = write(end.write, [1], 1) }

    func closeSockets() {
        close(udp)
        close(tcp)
    }

    func serve() {
        while true {
            var watched = [udp, tcp, end.read].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard poll(&watched, nfds_t(watched.count), -1) > 0 else { continue }
            if watched[2].revents != 0 { return }
            if watched[0].revents != 0 { serveDatagram() }
            if watched[1].revents != 0 { serveStream() }
        }
    }

    func send(_ response: [UInt8], to peer: sockaddr_in) {
        var peer = peer
        _ = withUnsafePointer(to: &peer) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(udp, response, response.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private func serveDatagram() {
        var packet = [UInt8](repeating: 0, count: 512)
        var peer = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let count = withUnsafeMutablePointer(to: &peer) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(udp, &packet, packet.count, CInt(MSG_DONTWAIT), $0, &length)
            }
        }
        guard let query = DNSQuery(packet.prefix(max(0, count))) else { return }
        state.withLock { state in
            state.questions.append(query.question)
            let port = UInt16(bigEndian: peer.sin_port)
            state.senders[query.question.name, default: []].insert(port)
            let isNew = state.messages.insert(query.identifier + bigEndian(port)).inserted
            if isNew { state.asked.append(query.question) }
        }
        let reply = reply(query.question)
        if case .held(let later) = reply {
            guard let response = query.response(later, overTCP: false) else { return }
            state.withLock { $0.held.append((response, peer)) }
        } else if let response = query.response(reply, overTCP: false) {
            send(response, to: peer)
        }
    }

    private func serveStream() {
        let peer = accept(tcp, nil, nil)
        defer { close(peer) }
        var packet = [UInt8](repeating: 0, count: 514)
        let count = recv(peer, &packet, packet.count, 0)
        guard count > 2, let query = DNSQuery(packet[2..<count]) else { return }
        state.withLock { state in
            state.questions.append(query.question)
            state.asked.append(query.question)
        }
        guard let response = query.response(reply(query.question), overTCP: true) else { return }
        let framed = bigEndian(UInt16(response.count)) + response
        Glibc.send(peer, framed, framed.count, CInt(MSG_NOSIGNAL))
    }
}

/// A question as it came, and the messages that answer it.
private struct DNSQuery {
    let question: NameServerStub.Question
    let identifier: [UInt8]
    /// The question section, to be repeated.
    private let section: [UInt8]

    init?(_ packet: ArraySlice<UInt8>) {
        let packet = Array(packet)
        var position = 12
        var labels: [String] = []
        while position < packet.count, packet[position] != 0 {
            let end = position + 1 + Int(packet[position])
            guard end < packet.count else { return nil }
            labels.append(String(decoding: packet[position + 1..<end], as: UTF8.self).lowercased())
            position = end
        }
        guard position + 5 <= packet.count else { return nil }
        let type = UInt16(packet[position + 1]) << 8 | UInt16(packet[position + 2])
        question = .init(name: labels.joined(separator: "."), type: type)
        identifier = Array(packet[0..<2])
        section = Array(packet[12..<position + 5])
    }

    func response(_ reply: NameServerStub.Reply, overTCP: Bool) -> [UInt8]? {
        let asked: [UInt8] = [0xC0, 12]
        switch reply {
        case .addresses(let addresses, let ttl):
            return message(answers: addresses.map { record(asked, question.type, ttl, $0.bytes) })
        case .aliases(let aliases, let addresses, let ttl):
            var owner = asked
            var records: [[UInt8]] = []
            for alias in aliases {
                records.append(record(owner, 5, alias.ttl, wireName(alias.name)))
                owner = wireName(alias.name)
            }
            return message(answers: records + addresses.map { record(owner, question.type, ttl, $0.bytes) })
        case .records(let records):
            return message(answers: records.map { record($0.owner.map(wireName) ?? asked, $0.type, $0.ttl, $0.data) })
        case .empty: return message()
        case .code(let code): return message(code: code)
        case .negative(let code, let ttl, let minimum):
            let figures = [UInt32(1), 3600, 600, 86_400, minimum].flatMap { bigEndian($0) }
            let authority = wireName("ns.example.com") + wireName("admin.example.com") + figures
            return message(code: code, authorities: [record(wireName("example.com"), 6, ttl, authority)])
        case .silence: return nil
        case .held(let later): return response(later, overTCP: overTCP)
        case .truncated(let full):
            return overTCP ? response(full, overTCP: true) : message(truncated: true)
        }
    }

    private func message(
        code: UInt8 = 0, truncated: Bool = false, answers: [[UInt8]] = [], authorities: [[UInt8]] = []
    ) -> [UInt8] {
        let flags: [UInt8] = [0x81 | (truncated ? 2 : 0), 0x80 | code]
        let counts = bigEndian(UInt16(answers.count)) + bigEndian(UInt16(authorities.count))
        return identifier + flags + [0, 1] + counts + [0, 0] + section + (answers + authorities).joined()
    }

    private func record(_ owner: [UInt8], _ type: UInt16, _ ttl: UInt32, _ data: [UInt8]) -> [UInt8] {
        owner + bigEndian(type) + [0, 1] + bigEndian(ttl) + bigEndian(UInt16(data.count)) + data
    }
}

private func wireName(_ name: String) -> [UInt8] {
    name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
}

private func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
}
