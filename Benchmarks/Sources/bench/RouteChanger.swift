// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneLabSupport
internal import DialtonePlatform

/// Adds and removes a route by one system call, so that no process starts while something is measured.
final class RouteChanger: Sendable {
    private let socket: OwnedDescriptor
    private let route: bench_route

    /// For the calling thread's network namespace; nothing is changed yet.
    init(_ route: bench_route) throws {
        socket = try opened("opening a netlink socket", bench_open_changer())
        self.route = route
    }

    /// Adds the route, or removes it.
    func change(add: Bool) throws {
        let result = withUnsafePointer(to: route) { bench_change_route(socket.number, $0, add) }
        if result != 0 { throw SystemError.last(add ? "adding a route" : "removing a route") }
    }

    /// Adds the route and those to the next prefixes of its length, so many in all.
    func addAll(_ count: UInt32) throws {
        let result = withUnsafePointer(to: route) { bench_add_routes(socket.number, $0, count) }
        if result != 0 { throw SystemError.last("adding \(count) routes") }
    }

    /// Removes and adds so many of them in turn, ten thousand changes a second; blocks meanwhile.
    func churn(over count: UInt32, milliseconds: UInt32) throws {
        let result = withUnsafePointer(to: route) { bench_churn_routes(socket.number, $0, count, milliseconds) }
        if result != 0 { throw SystemError.last("changing routes") }
    }
}

extension bench_route {
    /// A route to `prefix`.
    init(_ prefix: (UInt8, UInt8, UInt8, UInt8), length: UInt8, via gateway: (UInt8, UInt8, UInt8, UInt8), metric: Int)
    {
        self.init(
            prefix: Self.number(prefix), length: length, gateway: Self.number(gateway), metric: UInt32(metric))
    }

    private static func number(_ address: (UInt8, UInt8, UInt8, UInt8)) -> UInt32 {
        UInt32(address.0) << 24 | UInt32(address.1) << 16 | UInt32(address.2) << 8 | UInt32(address.3)
    }
}
