// SPDX-License-Identifier: Apache-2.0

import CDialtonePlatform
import DialtoneLabSupport
import DialtoneTestSupport
import Glibc

/// Clients that come, say something, and stay or go.
struct Sittings {
    /// How many stay at the same time.
    private static let mostClients = 48

    private let socket: String
    private let users: [UInt32?]
    private var maker: CallMaker
    private var clients: [UnixClient] = []
    private(set) var calls = 0
    private(set) var descriptors = 0

    /// Sittings of clients of `users`, where `nil` is this process's own.
    init(seed: UInt64, socket: String, users: [UInt32?]) throws {
        maker = try CallMaker(seed: seed)
        self.socket = socket
        self.users = users
    }

    /// One client comes, or comes back, and says something.
    mutating func sit() throws {
        if clients.count < Self.mostClients, clients.isEmpty || maker.random.chance(40) {
            let user = users[maker.random.below(users.count)]
            // None where that user has as many as may be.
            guard let client = try? UnixClient.connected(to: socket, as: user) else { return }
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
