// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneAgent
@testable import DialtoneConfiguration
@testable import DialtoneConnectionIO

/// Options of sockets that are numbers.
@Suite struct SocketNumbersTests {
    /// What the kernel has on a socket of a connection with this line.
    private func option(_ level: Int, _ option: CInt, after line: String) throws -> CInt {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[[connection]]\nname = 'a'\nremote = 'tcp://h:1'\n\(line)"
        ])
        let connection = try #require(try fixture.load().configuration.connections.first)
        let check = SettingsCheck(connection.settings, to: try Remote(connection.remote), owner: 0, wake: nil)
        let socket = OwnedDescriptor(socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
        try #require(check.policy).socketOptions.apply(to: socket.number, of: .v4)
        var (value, size) = (CInt(-1), socklen_t(MemoryLayout<CInt>.size))
        getsockopt(socket.number, CInt(level), option, &value, &size)
        return value
    }

    @Test(arguments: [
        ("socket.maximum_segment = 1200", Int(IPPROTO_TCP), TCP_MAXSEG, 1200),
        ("", Int(IPPROTO_TCP), TCP_MAXSEG, 536),
        // The kernel doubles it, for what it keeps beside the bytes (socket(7)).
        ("socket.receive_buffer = 8192", Int(SOL_SOCKET), SO_RCVBUF, 16_384),
    ])
    func `what a file says is what the kernel has`(line: String, level: Int, name: CInt, value: CInt) throws {
        #expect(try option(level, name, after: line) == value)
    }

    @Test(arguments: [
        ("socket.maximum_segment = 87", "socket.maximum_segment: 87 is out of range; from 88 to 32767"),
        ("socket.maximum_segment = '1k'", "socket.maximum_segment: expected an integer, found a string"),
        ("socket.mss = 1200", "socket.mss: unknown key"),
    ])
    func `what makes no sense is told by its key`(line: String, error: String) throws {
        let fixture = try ConfigurationFixture([
            "dialtone.toml": "[[connection]]\nname = 'a'\nremote = 'tcp://h:1'\n\(line)"
        ])
        let errors = fixture.errors()
        #expect(errors.count == 1 && errors.first?.hasSuffix("connection.\(error)") == true, "\(errors)")
    }
}
