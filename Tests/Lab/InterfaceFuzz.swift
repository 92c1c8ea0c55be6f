// SPDX-License-Identifier: Apache-2.0

import CPlatform
import DialtoneAPI
import DialtoneClient
import Foundation
import LabSupport
import Platform
import TestSupport
import Testing

/// Everything that can be said to the daemon, by several users at once, from a seed. It lives, it answers somebody who
/// is calm throughout, and when all have gone nothing of them is left.
///
/// `make fuzz TARGET=interface SECONDS=n` goes on for so long; `DIALTONE_SEED=n` repeats a run.
@Suite("The whole interface, from a seed", .lab)
struct InterfaceFuzz {
    /// How long it goes on in `make test`: the number of sittings, each of which is some calls of one client.
    private static let sittings = 400

    /// What the daemon may have grown by at the end, in MiB.
    private static let mostGrowth = 48

    @Test(.disabled("seed 8318188188378006980 leaves descriptors behind"), arguments: seeds(1))
    func `nothing that is said to it ends the daemon, or stays behind`(seed: UInt64)
        async throws
    {
        print("interface fuzz: DIALTONE_SEED=\(seed) repeats this run")
        let (machine, home) = (try await Namespace.island(), try DaemonHome())
        let daemon = try await home.launch(
            on: machine, arguments: ["--socket", home.socket, "--config", home.file, "--log-level", "warning"])
        try await eventually("the daemon serves") { home.hasSocket }
        _ = try await home.client.connections()
        let (descriptors, memory) = (try Self.descriptors(of: daemon), try Self.memory(of: daemon))

        let seconds = ProcessInfo.processInfo.environment["FUZZ_SECONDS"].flatMap { Int($0) }
        let end = seconds.map { BootClock.now() + .seconds($0) }
        var fuzz = try Sittings(seed: seed, socket: home.socket, users: AnotherUser.obstacle == nil)
        var count = 0
        while end.map({ BootClock.now() < $0 }) ?? (count < Self.sittings) {
            fuzz = try await machine.run { [fuzz] in
                var fuzz = fuzz
                for _ in 0..<20 { try fuzz.sit() }
                return fuzz
            }
            count += 20
            // Who is calm is answered, whatever the others do.
            _ = try await home.client.connections()
            try #require(daemon.isRunning, "seed \(seed): \(daemon.text(of: .error).suffix(2000))")
        }
        print("interface fuzz: \(count) sittings, \(fuzz.calls) calls, \(fuzz.descriptors) descriptors")
        fuzz.leave()
        for connection in try await home.client.connections() { try? await home.client.close(connection.name) }
        try await eventually("seed \(seed): no descriptor is left of them, of \(descriptors)") {
            ((try? Self.descriptors(of: daemon)) ?? .max) <= descriptors + 8
        }
        let growth = try Self.memory(of: daemon) - memory
        print("interface fuzz: the daemon has grown by \(growth) MiB")
        #expect(growth < Self.mostGrowth, "seed \(seed)")
    }

    private static func descriptors(of daemon: LabProcess) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.processID)/fd").count
    }

    private static func memory(of daemon: LabProcess) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(daemon.processID)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return try #require(line?.split(separator: " ").compactMap { Int($0) }.first) / 1024
    }
}

/// Clients that come, say something, and stay or go.
private struct Sittings: Sendable {
    /// How many stay at the same time.
    private static let mostClients = 48

    private let socket: String
    private let users: [UInt32?]
    private var maker: CallMaker
    private var clients: [UnixClient] = []
    private(set) var calls = 0
    private(set) var descriptors = 0

    init(seed: UInt64, socket: String, users hasUsers: Bool) throws {
        maker = try CallMaker(seed: seed)
        self.socket = socket
        users = hasUsers ? [nil, AnotherUser.number, AnotherUser.number - 1] : [nil]
    }

    /// All go.
    mutating func leave() { clients = [] }

    /// One client comes, or comes back, and says something.
    mutating func sit() throws {
        if clients.count < Self.mostClients, clients.isEmpty || maker.random.chance(40) {
            guard let client = try? UnixClient.connected(to: socket, as: users[maker.random.below(users.count)]) else {
                return
            }
            clients.append(client)
        }
        guard !clients.isEmpty else { return }
        let index = maker.random.below(clients.count)
        let client = clients[index]
        var bytes: [UInt8] = []
        for _ in 0...maker.random.below(12) {
            bytes += maker.call()
            calls += 1
        }
        // One that waits for nobody's reading: what does not fit is not said.
        say(bytes, to: client)
        if maker.random.chance(20) { client.endSending() }
        while let answer = try? client.pending(), !answer.isEmpty {}
        if maker.random.chance(25) { clients.remove(at: index) }
    }

    private mutating func say(_ bytes: [UInt8], to client: UnixClient) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(maker.random.chance(70) ? rest.count : 1 + maker.random.below(200))
            let passed = maker.random.chance(25) ? things() : []
            defer { for number in passed { Glibc.close(number) } }
            let count = Array(piece).withUnsafeBytes {
                platform_send(client.number, $0.baseAddress, $0.count, passed, CInt(passed.count))
            }
            guard count > 0 else { return }
            descriptors += passed.count
            rest = rest.dropFirst(count)
        }
    }

    /// Descriptors of all kinds, few or as many as the kernel lets ride.
    private mutating func things() -> [CInt] {
        let count = maker.random.chance(5) ? Int(platform_descriptors_max) : 1 + maker.random.below(5)
        return (0..<count).compactMap { _ in
            let number: CInt =
                switch maker.random.below(8) {
                case 0: open("/dev/null", O_RDWR | O_CLOEXEC)
                case 1: open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                case 2: Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
                case 3: Glibc.socket(AF_INET6, CInt(SOCK_DGRAM.rawValue), 0)
                case 4: Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
                case 5: epoll_create1(0)
                case 6: open("/proc/self/status", O_RDONLY | O_CLOEXEC)
                default: clients.isEmpty ? -1 : dup(clients[maker.random.below(clients.count)].number)
                }
            return number < 0 ? nil : number
        }
    }
}
