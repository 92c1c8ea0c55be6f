// SPDX-License-Identifier: Apache-2.0

internal import CAres
internal import Glibc
internal import NetworkPath
internal import Platform

extension Result<Resolution, ResolutionError> {
    /// The answer in what `ares_getaddrinfo` called back with.
    init(status: CInt, _ answer: UnsafePointer<ares_addrinfo>?) {
        guard status == ARES_SUCCESS, let answer else {
            self = .failure(ResolutionError(status: status))
            return
        }
        var addresses: [IPAddress] = []
        var lifetimes: [CInt] = []
        var node = answer.pointee.nodes
        while let record = node?.pointee {
            IPAddress(record.ai_addr).map { addresses.append($0) }
            lifetimes.append(record.ai_ttl)
            node = record.ai_next
        }
        // An alias that expires first takes the addresses behind it along.
        var alias = answer.pointee.cnames
        while let record = alias?.pointee {
            lifetimes.append(record.ttl)
            alias = record.next
        }
        guard !addresses.isEmpty else {
            self = .failure(ResolutionError(status: ARES_ENODATA))
            return
        }
        // RFC 2181, section 8: a time to live with the top bit set counts as zero.
        let lifetime = max(0, lifetimes.min() ?? 0)
        self = .success(Resolution(addresses: addresses, expires: BootClock.now() + .seconds(lifetime)))
    }
}

extension ResolutionError {
    /// The error for a status of c-ares, with its words.
    init(status: CInt) {
        let text = String(cString: ares_strerror(status))
        switch status {
        case ARES_ENOTFOUND, ARES_ENODATA, ARES_EBADNAME: self = .noSuchName(text)
        default: self = .transient(text)
        }
    }
}

extension IPAddress {
    /// The address in a socket address of either family.
    fileprivate init?(_ address: UnsafePointer<sockaddr>?) {
        guard let address else { return nil }
        let memory = UnsafeRawPointer(address)
        switch CInt(address.pointee.sa_family) {
        case AF_INET:
            self.init(v4: UInt32(bigEndian: memory.load(as: sockaddr_in.self).sin_addr.s_addr))
        case AF_INET6:
            var bytes = memory.load(as: sockaddr_in6.self).sin6_addr
            self.init(bytes: withUnsafeBytes(of: &bytes) { Array($0) })
        default:
            return nil
        }
    }
}
