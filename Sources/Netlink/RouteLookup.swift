// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
package import DialtoneNetworkPath
internal import DialtonePlatform
internal import Glibc

/// Asks the kernel for routes (`RTM_GETROUTE`), many questions to one system call.
struct RouteLookup {
    /// Questions sent at once. The kernel answers each into the socket's buffer before `sendto` returns, at most about
    /// 1 KiB of accounting each, and the default buffer holds 208 KiB: 64 leave room for refusals, which quote the
    /// question.
    static let batchSize = 64

    private let socket: NetlinkSocket

    init(on socket: NetlinkSocket) {
        self.socket = socket
    }

    /// The kernel's answers, in the order of `queries`.
    func answers(to queries: [PreparedQuery]) throws(SystemError) -> [RouteAnswer] {
        var answers: [RouteAnswer] = []
        answers.reserveCapacity(queries.count)
        var start = 0
        while start < queries.count {
            let end = min(start + Self.batchSize, queries.count)
            try answer(queries[start..<end], into: &answers)
            start = end
        }
        return answers
    }

    private func answer(
        _ batch: ArraySlice<PreparedQuery>, into answers: inout [RouteAnswer]
    ) throws(SystemError) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(batch.count * 128)
        var first: UInt32 = 0
        for query in batch {
            let sequence = socket.nextSequence()
            if first == 0 { first = sequence }
            query.request.append(to: &bytes, sequence: sequence)
        }
        try socket.send(bytes)
        if try receive(batch.count, from: first, into: &answers) { return }
        if batch.count > 1 {
            // The socket has less room than it should (a small net.core.rmem_default): fewer at a time go into it.
            let middle = batch.startIndex + batch.count / 2
            try answer(batch[..<middle], into: &answers)
            try answer(batch[middle...], into: &answers)
        } else {
            throw SystemError("reading the kernel's answer to a route lookup", code: ENOBUFS)
        }
    }

    /// Appends the answers to `count` questions numbered from `first`, and returns whether all were there; otherwise
    /// none is kept. With one lost, everything is read that the socket holds, for as long as something is left in it
    /// the kernel drops what does not fit unsaid.
    private func receive(
        _ count: Int, from first: UInt32, into answers: inout [RouteAnswer]
    ) throws(SystemError) -> Bool {
        let start = answers.count
        while answers.count < start + count {
            switch try socket.receive() {
            case .overrun: continue
            case .empty:
                answers.removeSubrange(start...)
                return false
            case .messages(let datagram):
                NetlinkMessage.forEach(in: datagram) { message in
                    // The kernel answers in the order of the questions, so that the first that is missing leaves all
                    // behind it out. The sequence may wrap inside a batch once in four billion questions; this does
                    // too.
                    guard message.sequence == first &+ UInt32(answers.count - start),
                        let answer = RouteAnswer(message)
                    else { return }
                    answers.append(answer)
                }
            }
        }
        return true
    }
}

/// A query in the form in which the kernel takes it. Made once for a watched target, which asks the same at each
/// change; a class, so that a round of many questions copies none of them.
package final class PreparedQuery: Sendable {
    /// What is asked.
    package let query: RouteQuery
    let request: NetlinkRequest

    /// The kernel's form of `query`.
    package init(_ query: RouteQuery) {
        self.query = query
        request = NetlinkRequest(query)
    }
}

extension NetlinkRequest {
    /// The question for `query`.
    ///
    /// - Parameter entry: whether to ask for the matching entry of the table (`RTM_F_FIB_MATCH`) instead of the route
    ///   that follows from it.
    init(_ query: RouteQuery, entry: Bool = false) {
        var header = rtmsg()
        header.rtm_family = UInt8(query.destination.family == .v4 ? AF_INET : AF_INET6)
        header.rtm_dst_len = UInt8(query.destination.family.bitWidth)
        header.rtm_src_len = UInt8(query.source == nil ? 0 : query.destination.family.bitWidth)
        // Without the flag the answer claims the main table, whichever one a rule led to. IPv6 always tells the table,
        // and refuses the flag as invalid (inet6_rtm_valid_getroute_req in net/ipv6/route.c).
        if query.destination.family == .v4 { header.rtm_flags = UInt32(RTM_F_LOOKUP_TABLE) }
        if entry { header.rtm_flags |= UInt32(RTM_F_FIB_MATCH) }
        self.init(type: RTM_GETROUTE, flags: NLM_F_REQUEST, header: header) { message in
            func put(_ type: rtattr_type_t, _ bytes: [UInt8]) {
                nla_put(message, CInt(type.rawValue), CInt(bytes.count), bytes)
            }
            put(RTA_DST, query.destination.bytes)
            if let source = query.source { put(RTA_SRC, source.bytes) }
            if let index = query.interfaceIndex {
                // The kernel's numbers are positive; those of a damaged recording may be anything.
                nla_put_u32(message, CInt(RTA_OIF.rawValue), UInt32(truncatingIfNeeded: index))
            }
            if let mark = query.mark { nla_put_u32(message, CInt(RTA_MARK.rawValue), mark) }
            if let user = query.user { nla_put_u32(message, CInt(RTA_UID.rawValue), user) }
            if let transport = query.transport {
                nla_put_u8(message, CInt(RTA_IP_PROTO.rawValue), transport == .tcp ? 6 : 17)
            }
            if let port = query.port { nla_put_u16(message, CInt(RTA_DPORT.rawValue), port.bigEndian) }
        }
    }
}

extension RouteAnswer {
    /// The answer in `message`; `nil` where it is none.
    init?(_ message: NetlinkMessage) {
        if let code = message.errorCode {
            // A blackhole is EINVAL without a word; a malformed question is EINVAL with an explanation.
            self = .refused(message.explanation == nil ? RouteRefusal(code: code) : .other(code: code))
        } else if message.type == RTM_NEWROUTE, let route = Route(message) {
            self = .route(route)
        } else {
            return nil
        }
    }
}

extension RouteRefusal {
    /// What a lookup's error number means. The numbers are those of the kernel's `fib_props` (net/ipv4/fib_semantics.c)
    /// and `ip6_null_entry` and its kin (net/ipv6/route.c).
    init(code: CInt) {
        switch code {
        case ENETUNREACH: self = .noRoute
        case EHOSTUNREACH: self = .unreachable
        case EACCES: self = .prohibited
        case EINVAL: self = .blackhole
        // The kernel has no rtnetlink handler for the family when IPv6 is compiled out or its module not loaded.
        case EAFNOSUPPORT, EOPNOTSUPP: self = .familyUnsupported
        default: self = .other(code: code)
        }
    }
}

extension Route {
    fileprivate init?(_ message: NetlinkMessage) {
        guard let header = message.payload(rtmsg.self) else { return nil }
        self.init(scope: Scope(header.rtm_type), interfaceIndex: 0, source: nil, table: UInt32(header.rtm_table))
        var asked: IPAddress?
        for attribute in message.attributes(after: rtmsg.self) {
            switch attribute.type {
            case Int(RTA_OIF.rawValue): interfaceIndex = Int(attribute.uint32 ?? 0)
            case Int(RTA_GATEWAY.rawValue): gateway = IPAddress(bytes: attribute.bytes)
            // An IPv4 route by an IPv6 next hop: two bytes of family, then the address (struct rtvia).
            case Int(RTA_VIA.rawValue): gateway = IPAddress(bytes: attribute.bytes.dropFirst(2))
            case Int(RTA_PREFSRC.rawValue): source = IPAddress(bytes: attribute.bytes)
            case Int(RTA_SRC.rawValue): asked = IPAddress(bytes: attribute.bytes)
            case Int(RTA_TABLE.rawValue): table = attribute.uint32 ?? table
            default: break
            }
        }
        // A source that was asked for is the one the packet carries. IPv4 then names no other (rt_fill_info in
        // net/ipv4/route.c); IPv6 goes on naming the one it would prefer, and quotes `::` where none was asked for.
        if let asked, !asked.isUnspecified { source = asked }
    }
}

extension Route.Scope {
    fileprivate init(_ type: UInt8) {
        switch Int(type) {
        case Int(RTN_LOCAL): self = .local
        case Int(RTN_BROADCAST), Int(RTN_MULTICAST), Int(RTN_ANYCAST): self = .group
        default: self = .remote
        }
    }
}
