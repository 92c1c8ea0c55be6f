// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneExpectations
import DialtoneLabSupport
import DialtonePlatform
import DialtoneTestSupport
import DialtoneVarlink
import Foundation
import Testing

/// Servers that ask their clients things while these sleep, and hang up on one that does not answer: the agent answers.
@Suite(.lab)
struct AnsweredStories {
    private static let address = LabNetwork.serverAddress(.v4)

    // MARK: - WebSocket

    @Test(.python, arguments: [false, true])
    func `websockets has its pings answered, and its message wakes the client`(isSecured: Bool) async throws {
        let certificate = LabCertificate()
        let recipe = LabServer.Recipe.websockets(port: 8765, tls: isSecured ? certificate.files : nil)
        let scheme = isSecured ? "wss" : "ws"
        try await Story.tell(
            by: recipe, to: "\(scheme)://\(Self.address):8765/mqtt",
            {
                $0.answers = [.init(protocol: "websocket")]
                if isSecured { $0.tls = .init(ca: certificate.authority) }
            }
        ) { story in
            let (client, epoch) = try await story.takeSocket()
            client.send(WebSocket.upgrade)
            #expect(client.text(untilIncluding: "\r\n\r\n").contains(WebSocket.acceptance))
            let parked = try await story.park(epoch)
            var line: LabProcess.Line?
            for _ in 1...3 {
                line = try await story.server.log.line(after: line, containing: "received keepalive pong")
            }
            try await story.hasAnswered(3)
            #expect(story.now == parked, "\(story.events.events.dropFirst(parked))")
            #expect(!story.server.log.lines.contains { $0.text.contains("timed out waiting for keepalive pong") })

            try await say("ring", to: "\(scheme)://\(Self.address):8765/", certificate.authority, on: story.lab.server)
            let reader = try await story.isWoken(after: parked, of: epoch)
            #expect(reader.bytes(6) == [0x81, 4] + Array("ring".utf8))
            // The connection is the client's again, and the server's pings are, too.
            #expect(reader.frame()?.first == 0x89)
        }
    }

    private func say(_ text: String, to server: String, _ authority: String, on machine: Namespace) async throws {
        _ = try await machine.command(
            [
                "env", "SSL_CERT_FILE=\(authority)", PythonTests.python,
                "\(SourceTree.root)/Tests/Lab/asking_server.py", "say", server, text,
            ])
    }

    @Test(.python) func `without the setting each ping is the client's`() async throws {
        try await Story.tell(by: .websockets(port: 8765), to: "ws://\(Self.address):8765/mqtt") { story in
            let (client, epoch) = try await story.takeSocket()
            client.send(WebSocket.upgrade)
            #expect(client.text(untilIncluding: "\r\n\r\n").contains(WebSocket.acceptance))
            let parked = try await story.park(epoch)
            let reader = try await story.isWoken(after: parked, of: epoch)
            #expect(reader.frame()?.first == 0x89)
        }
    }

    // MARK: - XMPP

    /// Says hello from another place to the one that sleeps.
    private static let caller = """
        import base64, socket
        link = socket.create_connection(("127.0.0.1", 5222))
        def say(text, end):
            link.sendall(text.encode())
            heard = b""
            while end and end not in heard: heard += link.recv(4096)
        stream = ("<?xml version='1.0'?><stream:stream to='lab.example' version='1.0' xmlns='jabber:client' "
            "xmlns:stream='http://etherx.jabber.org/streams'>")
        say(stream, b"</stream:features>")
        login = base64.b64encode(b"\\0juliet\\0secret").decode()
        say(f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{login}</auth>", b"<success")
        say(stream, b"</stream:features>")
        say("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>", b"</iq>")
        say("<message type='chat' to='juliet@lab.example/door'><body>ring</body></message>", b"")
        say("</stream:stream>", b"</stream")
        """

    @Test(.server("prosody")) func `prosody has its requests answered, and its message wakes the client`() async throws
    {
        let recipe = LabServer.Recipe.prosody(user: "juliet", password: "secret", patience: 4, acknowledges: true)
        try await Story.tell(by: recipe, to: "xmpp://\(Self.address)") { story in
            let (client, epoch) = try await story.takeSocket()
            #expect(XMPP.logIn(client, "juliet", "secret"))
            client.send("<enable xmlns='urn:xmpp:sm:3'/>")
            #expect(client.text(untilIncluding: "/>").contains("<enabled"))
            let parked = try await story.park(epoch, answering: [.init(protocol: "xmpp", handled: 0)])
            // It would have hung up on a client that left the first one unanswered.
            try await story.hasAnswered(3)
            #expect(story.now == parked, "\(story.events.events.dropFirst(parked))")

            _ = try await story.lab.server.command(["python3", "-c", Self.caller])
            let reader = try await story.isWoken(after: parked, of: epoch)
            let message = reader.text(untilIncluding: "</message>")
            #expect(message.hasPrefix("<message ") && message.contains("ring"), "\(message)")
            // One stanza was handled since.
            reader.send("<a xmlns='urn:xmpp:sm:3' h='1'/>")
            let again = try await story.park(epoch, answering: [.init(protocol: "xmpp", handled: 1)])
            try await story.hasAnswered(5)
            #expect(story.now == again, "\(story.events.events.dropFirst(again))")
            #expect(!story.server.log.lines.contains { $0.text.contains("handled") })
        }
    }

    @Test(.server("prosody")) func `on a new socket the opening begins a stream, and its requests are answered`()
        async throws
    {
        let recipe = LabServer.Recipe.prosody(user: "juliet", password: "secret", patience: 4, acknowledges: true)
        try await Story.tell(
            by: recipe, to: "xmpp://\(Self.address)",
            {
                let enable = "<enable xmlns='urn:xmpp:sm:3'/>"
                $0.opening =
                    XMPP.opening("juliet", "secret") + [
                        .init(send: enable, expect: .init(bytes: "<enabled", until: "/>"))
                    ]
                $0.answers = [.init(protocol: "xmpp")]
            }
        ) { story in
            _ = try await story.events.event("the session") { $0.kind == .sessionOpened }
            let before = story.now
            try await story.hasAnswered(2)
            #expect(story.now == before, "\(story.events.events.dropFirst(before))")
        }
    }
}

extension Story {
    /// The connection's socket, and its number.
    fileprivate func takeSocket() async throws -> (socket: ClientSocket, epoch: Int) {
        let flow = try await agent.client.take(Self.connection)
        let epoch = flow.epoch
        return (ClientSocket(OwnedDescriptor(flow.release())), epoch)
    }

    /// Parks the socket.
    ///
    /// - Returns: how many events were told by then.
    fileprivate func park(_ epoch: Int, answering answers: [ConnectionsAPI.AnsweredMessage]? = nil) async throws -> Int
    {
        let before = now
        try await agent.client.park(Self.connection, epoch: epoch, answers: answers)
        _ = try await events.event("parked", after: before) { $0.kind == .parked }
        return now
    }

    /// Waits until so many messages were answered.
    fileprivate func hasAnswered(_ count: Int) async throws {
        try await eventually("\(count) answers") {
            let metrics = try await agent.client.call(ConnectionsAPI.Metrics.self, .init())
            return metrics.connections.first?.counters.answeredMessages ?? 0 >= count
        }
    }

    /// Waits for the client to be woken for bytes, and takes the socket for it.
    fileprivate func isWoken(after count: Int, of epoch: Int) async throws -> ClientSocket {
        let wake = try await events.event("the wake", after: count) { $0.wake?.stage == .began }
        #expect(wake.wake?.reasons == [.data])
        let (socket, taken) = try await takeSocket()
        #expect(taken == epoch)
        return socket
    }
}
