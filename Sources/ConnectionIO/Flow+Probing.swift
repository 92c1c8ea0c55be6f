// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import Glibc

// What the keepaliveSender of a flow does with it: sends a keepalive, looks for its answer, has the kernel probe.

extension Flow {
    /// The longest answer to a keepalive, with room for a second one behind it.
    static let longestLook = 4096

    /// The kernel gives the age of an acknowledgement in ticks of its clock, of 10 ms at most: two readings of one may
    /// differ by so much and a little for the time between the two clocks' readings.
    static let acknowledgementGranularity = Duration.milliseconds(25)

    /// Whether the remote has acknowledged everything that was sent.
    var isDrained: Bool {
        if let secured {
            // In the pair, in `dialtone-tls`, in the socket.
            guard ask(false, { !Self.isUndelivered($0) }), let counts = secured.counts, counts.taken == counts.sent
            else { return false }
        }
        return askSocket(false) { !Self.isUndelivered($0) }
    }

    /// Sends bytes, whole or not at all. Meant for a few, on a flow that ``isDrained``: they find room.
    func send(_ bytes: [UInt8]) -> Bool {
        sendPart(bytes[...]) == bytes.count
    }

    /// Sends as many of these bytes as there is room for; says how many.
    func sendPart(_ bytes: ArraySlice<UInt8>) -> Int {
        ask(0) { number in
            bytes.withUnsafeBytes {
                max(Glibc.send(number, $0.baseAddress, $0.count, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL)), 0)
            }
        }
    }

    /// The first unread bytes, which stay unread: an answer to a keepalive, or so many.
    func peek(_ longest: Int = longestLook) -> [UInt8] {
        ask([]) { Self.read($0, longest, CInt(MSG_PEEK)) }
    }

    /// Reads so many unread bytes, which were found to be an answer, and drops them.
    func discard(_ count: Int) {
        _ = ask([]) { Self.read($0, count, 0) }
    }

    private nonisolated static func read(_ number: CInt, _ longest: Int, _ flags: CInt) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: longest) { buffer, count in
            count = max(recv(number, buffer.baseAddress, longest, flags | CInt(MSG_DONTWAIT)), 0)
        }
    }

    /// How long nothing has passed on the flow in either direction, acknowledgements included. The kernel counts it
    /// without the time asleep.
    var silence: Duration? {
        information.map {
            .milliseconds(Int64(min($0.tcpi_last_data_sent, $0.tcpi_last_data_recv, $0.tcpi_last_ack_recv)))
        }
    }

    /// The same by data alone: the end of a stream acknowledges what came before.
    var dataSilence: Duration? {
        information.map { .milliseconds(Int64(min($0.tcpi_last_data_sent, $0.tcpi_last_data_recv))) }
    }

    /// Has the kernel's keepalive, if there is one, wait longer than the heartbeat that the agent sends each
    /// `interval`: the kernel probes only where the agent may not send.
    func probeByKernel(afterSilence interval: Duration) {
        let longest = KeepaliveProtocol.kernel.figures.intervals.upperBound
        let idle = min(.seconds(interval.components.seconds + 2), longest)
        guard let keepalive = options.keepalive, keepalive.idle != idle else { return }
        var options = options
        options.keepalive?.idle = idle
        try? configure(options)
    }

    /// Has the kernel send a probe as soon as the line has been silent for a second, and each second from then on.
    ///
    /// Setting `TCP_KEEPIDLE` starts the kernel's timer anew with what is left of it (`tcp_sock_set_keepidle_locked` in
    /// net/ipv4/tcp.c), which is nothing on a line that was silent for that long.
    func beginProbing() {
        set(SO_KEEPALIVE, at: SOL_SOCKET, to: 1)
        set(TCP_KEEPINTVL, at: CInt(IPPROTO_TCP), to: 1)
        set(TCP_KEEPIDLE, at: CInt(IPPROTO_TCP), to: 1)
    }

    /// Puts the kernel's keepalive back to what it was asked to be.
    func endProbing() {
        do throws(SystemError) {
            try configure(options)
        } catch {
            // It could be set before, so it is refused to a socket that broke in this moment alone.
            return
        }
    }

    private func set(_ option: CInt, at level: CInt, to value: CInt) {
        askSocket(()) { number in
            number.setSocketOption(option, at: level, to: value)
        }
    }
}
