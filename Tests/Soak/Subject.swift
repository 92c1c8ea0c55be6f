// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

/// What is watched: a packet, in the product's terms and in those of `ip route get`.
struct Subject: Hashable, Sendable {
    var address: String
    var mark: UInt32?
    var user: UInt32?
    var transport: Target.TransportProtocol?
    var port: UInt16?
    var interface: String?
    var source: String?
    /// Whether it is asked which entry of a table matches, and not where the packet goes.
    var isAboutTables = false

    init(
        _ address: String, mark: UInt32? = nil, user: UInt32? = nil, transport: Target.TransportProtocol? = nil,
        port: UInt16? = nil, interface: String? = nil, source: String? = nil
    ) {
        self.address = address
        self.mark = mark
        self.user = user
        self.transport = transport
        self.port = port
        self.interface = interface
        self.source = source
    }

    var isV6: Bool { address.contains(":") }

    /// As the product is asked.
    var target: Target {
        Target(
            .init(address), port: port, transport: transport, mark: mark, user: user, interface: interface,
            source: source.flatMap { IPAddress($0) })
    }

    /// As the kernel is asked. A port means TCP unless something else is said.
    var lookup: String {
        let transport = transport?.rawValue ?? (port == nil ? nil : "tcp")
        let words: [(String, String?)] = [
            ("from", source), ("oif", interface), ("mark", mark.map { "\($0)" }), ("uid", user.map { "\($0)" }),
            ("ipproto", transport), ("dport", port.map { "\($0)" }),
        ]
        let question = isAboutTables ? "route get fibmatch" : "route get"
        return words.reduce("\(question) \(address)") { text, word in text + (word.1.map { " \(word.0) \($0)" } ?? "") }
    }
}

extension Subject {
    /// The addresses by which the product asks for the network as such (`Reachability/Inquiry.swift`).
    static let internet = [Subject("198.41.0.4"), Subject("2001:503:ba3e::2:30")]

    /// The same over the link called `link` alone.
    static func internet(by link: String) -> [Subject] { internet.map { Subject($0.address, interface: link) } }

    /// The links whose kind the product calls virtual: all but the bridge.
    static let virtualLinks = ["e0", "e1", "e2", "x0", "y0", "x1", "m0", "i0"]

    /// The name servers of the host: one inside of a prefix that is churned, one on a link that comes and goes. With
    /// them a fact changes that is part of every verdict, while what most of those rest on stays as it is.
    static let nameServers = [
        Subject("203.0.113.53", transport: .udp, port: 53),
        Subject("fe80::1", transport: .udp, port: 53, interface: "x0"),
    ]

    /// What the network as a whole is judged by.
    static let ofNetwork = internet + (["b0"] + virtualLinks).flatMap(internet) + nameServers

    /// The route to it over `link`: without one IPv4 takes the whole Internet for a neighbour there.
    static func route(by link: String) -> Subject {
        var subject = internet(by: link)[0]
        subject.isAboutTables = true
        return subject
    }

    /// What a run watches: inside and outside of the prefixes that are churned, on the links, on the machine itself,
    /// and with each property that a rule may select on.
    static let all: [Subject] = [
        Subject("198.51.100.7"), Subject("198.51.100.200"), Subject("203.0.113.9"), Subject("203.0.113.200"),
        Subject("172.20.1.1"), Subject("8.8.8.8"), Subject("10.0.0.1"), Subject("10.1.0.254"), Subject("10.2.0.2"),
        Subject("10.3.0.9"), Subject("10.0.2.1"), Subject("127.0.0.1"), Subject("224.0.1.9"), Subject("10.0.0.255"),
        Subject("2001:db8:aaaa::7"), Subject("2001:db8:aaaa::8"), Subject("2001:db8:aaaa:1::1"),
        Subject("2001:db8:bbbb::1"), Subject("2606:4700::1111"), Subject("fd00:99::1"), Subject("2001:db8::1"),
        Subject("2001:db8:1::2"), Subject("::1"),
        Subject("198.51.100.7", mark: 7), Subject("203.0.113.9", user: 1000), Subject("198.51.100.7", port: 5060),
        Subject("198.51.100.7", transport: .udp, port: 5060), Subject("8.8.8.8", transport: .udp),
        Subject("203.0.113.9", interface: "e1"), Subject("8.8.8.8", interface: "x0"),
        Subject("8.8.8.8", source: "10.1.0.2"), Subject("198.51.100.7", mark: 8, user: 1000, port: 53),
        Subject("2001:db8:aaaa::7", mark: 7), Subject("2001:db8:aaaa::7", user: 1000),
        Subject("2001:db8:bbbb::1", port: 5060), Subject("2606:4700::1111", interface: "e2"),
        Subject("2606:4700::1111", source: "2001:db8:1::2"),
        Subject("fd00:99::1", mark: 8, transport: .udp, port: 53, interface: "e0"),
    ]
}
