// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneResolver

struct NameServersTests {
    @Test(arguments: [
        ("nameserver 192.0.2.1\nnameserver 2001:db8::1\n", ["192.0.2.1", "2001:db8::1"]),
        ("# nameserver 192.0.2.1\n; nameserver 192.0.2.2\n", []),
        ("nameserver\t192.0.2.1 # the router\r\n", ["192.0.2.1"]),
        ("nameserver fe80::1%eth0\nnameserver 192.0.2.1%eth0\n", ["fe80::1 on eth0", "192.0.2.1"]),
        ("search example.com\noptions edns0\nnameserver 192.0.2.1", ["192.0.2.1"]),
        (" nameserver 192.0.2.1\nnameservers 192.0.2.2\nnameserver\nnameserver example.com\nnameserver %\n", []),
        ("", []),
    ])
    func `the servers of a configuration`(text: String, servers: [String]) {
        let found = nameServers(inConfiguration: text).map { server in
            "\(server.address)" + (server.interface.map { " on \($0)" } ?? "")
        }
        #expect(found == servers)
    }
}
