// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import LabSupport
import Platform
import Testing

@Suite("This process as the host", .lab)
struct ThisProcessTests {
    @Test func `code on any queue is on the host`() async throws {
        try await LabNetwork.withThisProcessAsHost { lab in
            let server = try await lab.server.run { try TCPSocket.listening(on: 0) }
            let port = try server.port()
            let client = try await DispatchQueue(label: "anywhere").turn {
                try TCPSocket.connected(to: LabNetwork.serverAddress(.v6), port, from: Uplink.wan1.address(.v6))
            }
            try client.send("from here")
            #expect(try server.accept().receive() == "from here")
        }
    }

    @Test func `nothing of one test is left for the next`() async throws {
        let before = try await LabNetwork.withThisProcessAsHost { try await $0.host.state() }
        try await LabNetwork.withThisProcessAsHost { lab in
            try await lab.addRefusingRoute(.blackhole, "198.18.0.0/15")
            try await lab.addRefusingRoute(.throw, "2001:db8:77::/48", table: 77)
            try await lab.addRule(.v4, "fwmark 7 prohibit")
            try await lab.addRule(.v6, "to 2001:db8:77::/48 table 77")
            try await lab.host.ip("nexthop add id 7 via \(Uplink.wan0.gateway(.v4)) dev wan0")
        }
        let after = try await LabNetwork.withThisProcessAsHost { try await $0.host.state() }
        #expect(after == before)
    }

    @Test func `threads of the pool stay out of the Lab's other networks`() async throws {
        try await LabNetwork.with { lab in
            let own = try Self.namespace()
            let hosts = try await lab.host.run { try Self.namespace() }
            #expect(hosts != own)
            // Busy at once, so that the pool has to start threads, some of them right after a namespace's thread spoke.
            let seen = try await withThrowingTaskGroup { group in
                for number in 0..<64 {
                    group.addTask {
                        let machine = number.isMultiple(of: 2) ? lab.host : lab.router
                        _ = try await machine.run { number }
                        return try await DispatchQueue(label: "\(number)").turn { try Self.namespace() }
                    }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(seen == [own])
        }
    }

    /// The network namespace of the calling thread.
    private static func namespace() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = try retryingInterrupts("reading the thread's namespace") {
            readlink("/proc/thread-self/ns/net", &buffer, buffer.count)
        }
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}

extension DispatchQueue {
    /// Runs `body` in a turn of this queue.
    fileprivate func turn<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            async { continuation.resume(with: Result(catching: body)) }
        }
    }
}

extension Namespace {
    /// What a test may have changed.
    fileprivate func state() async throws -> [String] {
        var state = [try await ip("nexthop show")]
        for family in Family.allCases.map(\.rawValue) {
            state.append(try await ip("\(family) rule show"))
            // Link-local routes and multicast come and go with the links' own addresses.
            let routes = try await ip("\(family) route show table all").split(separator: "\n")
            state += routes.filter { !$0.contains("fe80") && !$0.contains("ff00") }.map(String.init).sorted()
        }
        return state
    }
}
