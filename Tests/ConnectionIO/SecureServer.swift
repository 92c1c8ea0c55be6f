// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtonePlatform
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Dispatch
import Glibc

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// A server with TLS on the loopback interface, on a queue of its own: the agent's is busy with the other end.
@AgentQueue
final class SecureServer {
    static let name = "sip.example.com"

    /// What the server does once it has a client.
    struct Manners: Sendable {
        /// What it does with the session when the handshake is over.
        var whenOpen: @Sendable (TestServer.Session) -> Void = { _ in }
        /// What it does when there is something new in `received`.
        var whenHeard: @Sendable (TestServer.Session) -> Void = { _ in }
        /// Whether it closes the socket after the handshake.
        var hangsUp = false
        /// Whether it closes the socket after it has answered the first word.
        var hangsUpWhenHeard = false
        /// Whether it resets the connection in place of closing it.
        var resets = false
        /// Whether it never answers.
        var isSilent = false
        /// Whether it wants a client certificate.
        var asksForCertificate = false
    }

    /// What became of a client, in the server's eyes.
    struct Ending: Sendable {
        var isResumed = false
        var sawClose = false
        var error: String?
    }

    let endpoint: Endpoint
    let endings = Inbox<Ending>()
    private let files = TestFiles()
    private let authority: String

    /// Serves clients one after the other, each with the next of `manners`; the last one's are those of all further.
    init(_ manners: Manners...) throws {
        let listener = try LoopbackServer()
        endpoint = listener.endpoint
        let authority = TestCertificate(.authority("Test Authority"))
        self.authority = files.write(authority.pem, to: "authority.pem")
        let certificate = TestCertificate(.init("server", alternatives: "DNS:\(Self.name)"), issuer: authority)
        var settings = TestServer.Settings()
        if manners.contains(where: \.asksForCertificate) { settings.clientAuthority = authority }
        // Made here and used there alone.
        nonisolated(unsafe) let server = TestServer(certificate, settings)
        let descriptor = try listener.listener.duplicate().release()
        let endings = endings
        DispatchQueue(label: "server").async {
            serve(descriptor, server, manners) { ending in AgentQueue.async { endings.put(ending) } }
        }
    }

    /// A policy that trusts this server.
    var policy: TLSPolicy {
        var policy = TLSPolicy()
        policy.authorities = authority
        return policy
    }
}

/// Accepts clients until there come none for a while, which ends the thread.
private func serve(
    _ listener: CInt, _ server: TestServer, _ manners: [SecureServer.Manners],
    _ tell: @Sendable (SecureServer.Ending) -> Void
) {
    defer { close(listener) }
    var manners = manners[...]
    while true {
        var entry = pollfd(fd: listener, events: CShort(POLLIN), revents: 0)
        guard poll(&entry, 1, 30_000) == 1, let current = manners.first else { return }
        if manners.count > 1 { manners = manners.dropFirst() }
        let socket = accept(listener, nil, nil)
        if socket < 0 { return }
        tell(serve(client: socket, server.accept(), current))
        close(socket)
    }
}

private func serve(
    client socket: CInt, _ session: TestServer.Session, _ manners: SecureServer.Manners
) -> SecureServer.Ending {
    var wasOpen = false
    var heard = 0
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
        let count = recv(socket, &buffer, buffer.count, 0)
        if count <= 0 { break }
        if manners.isSilent { continue }
        session.receive(Array(buffer[..<count]))
        if session.isOpen, !wasOpen, session.error == nil {
            wasOpen = true
            manners.whenOpen(session)
        }
        if session.received.count > heard {
            heard = session.received.count
            manners.whenHeard(session)
        }
        let output = session.takeOutput()
        _ = send(socket, output, output.count, CInt(MSG_NOSIGNAL))
        if session.error != nil || (wasOpen && manners.hangsUp) || (heard > 0 && manners.hangsUpWhenHeard) {
            break
        }
    }
    if manners.resets { Flow.setLinger(of: socket, true) }
    return SecureServer.Ending(isResumed: session.isResumed, sawClose: session.sawClose, error: session.error)
}
