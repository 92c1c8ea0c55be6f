// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneConnectionIO
import DialtoneNetworkPath
import DialtonePlatform
import Glibc

/// A network that is as the test says. It sends nothing; where it says "satisfied" over loopback, flows are real.
@AgentQueue
final class FakeNetwork: PathSource, NameSource {
    private final class Observation: Ongoing {
        let target: Target
        var handler: (@AgentQueue (Path) -> Void)?

        init(_ target: Target, _ handler: @escaping @AgentQueue (Path) -> Void) {
            self.target = target
            self.handler = handler
        }

        func cancel() { handler = nil }
    }

    private var observations: [Observation] = []

    /// The path to everything; changing it tells everybody, in this very turn.
    var path = Path(status: .unsatisfied, reason: .noRoute) {
        didSet { for observation in observations { observation.handler?(path) } }
    }

    /// Who watches the way to where.
    var targets: [Target] { observations.filter { $0.handler != nil }.map(\.target) }

    func observePath(
        to target: Target, for account: Account, _ handler: @escaping @AgentQueue (Path) -> Void
    ) -> any Ongoing {
        let observation = Observation(target, handler)
        observations.removeAll { $0.handler == nil }
        observations.append(observation)
        AgentQueue.async { observation.handler?(self.path) }
        return observation
    }

    func detour(to remote: Endpoint, around avoided: Int, for target: Target) -> Detour? { nil }

    func network(of path: Path) -> NetworkIdentity? { nil }

    func ask(
        _ question: NameQuestion, for target: Target,
        _ completion: @escaping @AgentQueue (Result<NameAnswer, ResolutionFailure>) -> Void
    ) -> any Ongoing {
        let query = Observation(target) { _ in completion(.failure(.noSuchName)) }
        AgentQueue.async { query.handler?(self.path) }
        return query
    }

    /// Tells every waiting connection something new: one event each.
    func change() {
        path.reason = path.reason == .noRoute ? .noCarrier : .noRoute
    }

    /// Everything can be reached by the loopback interface.
    func becomeReachable() {
        path = Path(
            status: .satisfied, source: .loopback, destination: .loopback, isLocalAddress: true, supportsIPv4: true)
    }
}

extension IPAddress {
    /// 127.0.0.1.
    static let loopback = IPAddress(v4: 0x7F00_0001)
}

/// A port of the loopback interface that the kernel answers on.
final class LoopbackListener: Sendable {
    private let socket: OwnedDescriptor
    let port: UInt16

    init() throws(SystemError) {
        let number = try retryingInterrupts("making a socket") {
            Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        }
        socket = OwnedDescriptor(number)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        port = try withUnsafeMutablePointer(to: &address) { pointer throws(SystemError) in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address throws(SystemError) in
                try retryingInterrupts("binding") { bind(number, address, length) }
                try retryingInterrupts("listening") { listen(number, 128) }
                try retryingInterrupts("asking for the port") { getsockname(number, address, &length) }
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
    }

    /// Whether ``accept()`` returns at once.
    var hasClient: Bool {
        var poll = pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&poll, 1, 0) == 1
    }

    /// The next client.
    func accept() throws(SystemError) -> OwnedDescriptor {
        OwnedDescriptor(
            try retryingInterrupts("accepting") { Glibc.accept(socket.number, nil, nil) })
    }

    /// A client, connected.
    func connect() throws(SystemError) -> OwnedDescriptor {
        let number = try retryingInterrupts("making a socket") {
            Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        }
        let client = OwnedDescriptor(number)
        let address = SocketAddress(.loopback, port: port)
        try retryingInterrupts("connecting") { address.withPointer { Glibc.connect(number, $0, $1) } }
        return client
    }

    /// From now on the port refuses.
    func refuse() { _ = Glibc.shutdown(socket.number, CInt(SHUT_RDWR)) }

    /// The listening socket once more.
    func duplicate() throws(SystemError) -> OwnedDescriptor { try socket.duplicate() }
}
