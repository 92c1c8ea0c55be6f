// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import Glibc

// Options of sockets that nothing but the kernel acts on. One more takes a field of `SocketSettings`, a line here, and
// its entry in docs/dialtone.toml.5.

extension SettingsCheck {
    /// What is set on the connection's sockets.
    mutating func socketNumbers() -> [SocketNumber] {
        guard let socket = settings.socket else { return [] }
        return [
            // `TCP_MIN_MSS` and `MAX_TCP_WINDOW` (include/net/tcp.h).
            number(socket.maximumSegment, "maximumSegment", 88...32_767, IPPROTO_TCP, TCP_MAXSEG),
            // From the least that tcp(7) has for a socket to what fills a fast line of some 100 ms.
            number(socket.receiveBuffer, "receiveBuffer", 4_096...4_194_304, Int(SOL_SOCKET), SO_RCVBUF),
        ].compactMap(\.self)
    }

    private mutating func number(
        _ value: Int?, _ name: String, _ range: ClosedRange<Int>, _ level: Int, _ option: Int32
    ) -> SocketNumber? {
        number(value, "socket.\(name)", range).map {
            SocketNumber(name: name, level: Int32(level), option: option, value: Int32($0))
        }
    }
}
