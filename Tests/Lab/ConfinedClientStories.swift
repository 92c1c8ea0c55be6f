// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import Testing

/// Programs that were confined to a network of their own, and find the daemon's socket in the file system.
@Suite(.lab, .serialized) struct ConfinedClientStories {
    private static let open =
        #"{"method":"org.dialtone.Connections.Open","parameters":{"name":"way-out","remote":"tcp://127.0.0.1:1"}}"#
    private static let take = #"{"method":"org.dialtone.Connections.Take","parameters":{"name":"way-out"}}"#
    private static let park = """
        {"method":"org.dialtone.Connections.Park","parameters":{"name":"way-out","epoch":1,"opening":[{"send":"OUT"}]}}
        """
    private static let redial = #"{"method":"org.dialtone.Connections.Redial","parameters":{"name":"way-out"}}"#
    private static let explain =
        #"{"method":"org.dialtone.Network.Explain","parameters":{"target":{"host":"localhost"}}}"#
    private static let adopt =
        #"{"method":"org.dialtone.Connections.Adopt","parameters":{"name":"in","fileDescriptor":0}}"#
    private static let address =
        #"{"method":"org.dialtone.Network.GetPath","parameters":{"target":{"host":"127.0.0.1"}}}"#
    private static let list = #"{"method":"org.dialtone.Connections.List"}"#

    /// The answer to one call of a program on `machine`.
    private func answer(to call: String, on machine: Namespace, from home: DaemonHome) async throws -> String {
        try await machine.run {
            let client = try UnixClient.connected(to: home.socket)
            try client.send(call + "\0")
            var bytes: [UInt8] = []
            while bytes.last != 0 {
                let more = try client.receive()
                if more.isEmpty { break }
                bytes += more
            }
            return String(decoding: bytes.dropLast(), as: UTF8.self)
        }
    }

    @Test func `gets neither a connection nor a name looked up, and is told why`() async throws {
        let (machine, cell, home) = (try await Namespace.island(), try await Namespace.island(), try DaemonHome())
        try home.configure("", admission: "")
        _ = try await home.start(on: machine)
        for (call, interface) in [
            (Self.open, "Connections"), (Self.take, "Connections"), (Self.adopt, "Connections"),
            (Self.park, "Connections"), (Self.redial, "Connections"),
            (Self.explain, "Network"),
        ] {
            let refusal = try await answer(to: call, on: cell, from: home)
            #expect(refusal.contains("org.dialtone.\(interface).ForeignNetwork"), "\(call): \(refusal)")
            #expect(refusal.contains("other_namespaces"), "\(refusal)")
            let here = try await answer(to: call, on: machine, from: home)
            #expect(!here.contains("ForeignNetwork"), "\(call): \(here)")
        }
        for call in [Self.list, Self.address] {
            let reply = try await answer(to: call, on: cell, from: home)
            #expect(reply.hasPrefix(#"{"parameters":"#), "\(call): \(reply)")
        }
    }

    @Test(.anotherUser) func `gets them where the configuration admits its user`() async throws {
        let (machine, cell, home) = (try await Namespace.island(), try await Namespace.island(), try DaemonHome())
        try home.configure("", admission: "[clients]\nother_namespaces = [\"0\"]\n")
        _ = try await home.start(on: machine)
        expect(try await answer(to: Self.open, on: cell, from: home), is: #"{"parameters":{"name":"way-out"}}"#)
        let outcome = try await home.dialtone(
            "open", "--name", "mine", "tcp://127.0.0.1:1", on: cell, by: AnotherUser.command)
        #expect(outcome.description.contains("another network namespace"), "\(outcome)")
    }
}
