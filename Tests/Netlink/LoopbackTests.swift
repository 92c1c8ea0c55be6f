// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneNetlink

/// What every machine's own kernel answers about its loopback, asked with no privilege. Nothing is changed or sent.
@Suite(.enabled(if: hasLoopback, "this sandbox gives no netlink, or has its loopback down"))
struct LoopbackTests {

    @Test func `a lookup finds its source`() throws {
        let route = try #require(try self.route(RouteQuery(.loopback)))
        #expect(route.source == .loopback)
        #expect(route.gateway == nil)
    }

    /// IPv4 answers such a question with `RTA_SRC` and no `RTA_PREFSRC`.
    @Test func `a lookup with a source keeps it`() throws {
        for source in [.loopback, IPAddress(v4: 0x7F00_0002)] {
            var query = RouteQuery(.loopback)
            query.source = source
            #expect(try route(query)?.source == source)
        }
    }

    /// More questions than go to the kernel at once.
    @Test func `answers come in the order of the questions`() throws {
        let sources = Self.sources(3 * RouteLookup.batchSize + 1)
        #expect(try Self.answeredSources(to: sources, by: RouteLookup(on: NetlinkSocket())) == sources)
    }

    /// Room for three answers: the kernel drops the others.
    @Test func `answers that find no room are asked for again`() throws {
        let sources = Self.sources(RouteLookup.batchSize)
        let lookup = RouteLookup(on: try NetlinkSocket(receiveBuffer: 1))
        for _ in 1...2 { #expect(try Self.answeredSources(to: sources, by: lookup) == sources) }
    }

    @Test func `no questions have no answers`() throws {
        #expect(try RouteLookup(on: NetlinkSocket()).answers(to: []).isEmpty)
    }

    @Test func `a dump finds the loopback`() throws {
        var kinds = InterfaceKinds()
        let snapshot = try KernelDump(on: NetlinkSocket()).read(kinds: &kinds)
        let loopback = try #require(snapshot.interfaces.values.first { $0.kind == .loopback })
        #expect(loopback.isOperational)
        #expect(loopback.addresses.contains { $0.address == .loopback && $0.prefixLength == 8 })
    }

    /// As after one that broke off for want of memory: the kernel takes no other on the socket while it is not read.
    @Test func `a dump that was given up is no obstacle to the next`() throws {
        let socket = try NetlinkSocket()
        let request = NetlinkRequest(type: RTM_GETLINK, flags: NLM_F_REQUEST | NLM_F_DUMP, header: ifinfomsg())
        _ = try socket.send(request)
        var kinds = InterfaceKinds()
        for _ in 1...2 {
            let snapshot = try KernelDump(on: socket).read(kinds: &kinds)
            #expect(snapshot.interfaces.values.contains { $0.kind == .loopback })
            #expect(snapshot.isCoherent)
        }
    }

    private static func sources(_ count: Int) -> [IPAddress] {
        (1...UInt32(count)).map { IPAddress(v4: 0x7F00_0000 + $0) }
    }

    /// The sources in the answers to one question from each of `sources`.
    private static func answeredSources(to sources: [IPAddress], by lookup: RouteLookup) throws -> [IPAddress?] {
        let queries = sources.map { source in
            var query = RouteQuery(.loopback)
            query.source = source
            return PreparedQuery(query)
        }
        return try lookup.answers(to: queries).map { answer in
            guard case .route(let route) = answer else { return nil }
            return route.source
        }
    }

    private func route(_ query: RouteQuery) throws -> Route? {
        let answers = try RouteLookup(on: NetlinkSocket()).answers(to: [PreparedQuery(query)])
        guard case .route(let route)? = answers.first else { return nil }
        return route
    }
}

private let hasLoopback: Bool = {
    let request = PreparedQuery(RouteQuery(IPAddress(v4: 0x7F00_0001)))
    guard let socket = try? NetlinkSocket(), let answers = try? RouteLookup(on: socket).answers(to: [request]),
        case .route(let route)? = answers.first
    else { return false }
    return route.scope == .local
}()
