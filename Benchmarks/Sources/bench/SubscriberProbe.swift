// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtonePlatform
internal import Glibc

/// From the kernel's event to the read of a subscriber of the daemon, which waits in one system call on its socket.
enum SubscriberProbe {
    static func measure(_ daemon: String) async throws -> Measurement {
        let network = try ProbeNetwork.build()
        let files = try AgentFiles()
        let child = try Child(files.command(daemon))
        defer { withExtendedLifetime(child) {} }
        let messages = try subscribe(to: ProbeNetwork.host(1), at: files)
        return try await Rounds(count: 500).measure(against: network.bare, messages) {
            try network.route.change(add: $0.isMultiple(of: 2))
        }
    }

    /// Subscribes to the path to a host, at the daemon of these files, and waits for the first message.
    static func subscribe(to host: String, at files: AgentFiles) throws -> Stamper {
        let socket = try files.connect()
        let call = """
            {"method":"org.dialtone.Network.MonitorPath","parameters":{"target":{"host":"\(host)"}},"more":true}\u{0}
            """
        try retryingInterrupts("subscribing") { send(socket.number, call, call.utf8.count, CInt(MSG_NOSIGNAL)) }
        let messages = try Stamper(socket, BENCH_MESSAGES, end: "\u{0}")
        while messages.count == 0 { usleep(1000) }
        return messages
    }
}
