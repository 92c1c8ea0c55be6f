// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtonePlatform
internal import DialtoneTLS
internal import Glibc

/// One socket of a probe, on its way to an answer.
final class ProbeAttempt {
    private let request: FlowRequest
    private let context: TLSContext?
    private let began = BootClock.now()
    private var ended = BootClock.now()
    private var socket: OwnedDescriptor?
    private var session: TLSSession?
    /// When a server that asked for a client's certificate has had time to refuse; with TLS 1.3 it does so after the
    /// client's end of the handshake (RFC 8446, section 4.4.2.4).
    private(set) var settlesAt: Duration?
    /// A round trip of the slowest networks.
    private static let refusalTime = Duration.seconds(2)
    /// The answer, or why there is none; `nil` until that is known.
    private(set) var result: Result<TLSSummary?, FlowFailure>?

    /// Begins to connect.
    init(_ request: FlowRequest, _ context: TLSContext?) {
        (self.request, self.context) = (request, context)
        do throws(FlowFailure) {
            socket = try request.connectingSocket()
        } catch {
            end(.failure(error))
        }
    }

    var answer: ServerProbe.Answer {
        .init(endpoint: request.remote, result: result ?? .failure(.timedOut), duration: ended - began)
    }

    /// What to wait for.
    var awaited: pollfd {
        let writes = session.map { $0.pendingOutput > 0 } ?? true
        return pollfd(fd: number, events: Int16(POLLIN) | (writes ? Int16(POLLOUT) : 0), revents: 0)
    }

    private var number: CInt {
        switch socket {
        case .some(let socket): socket.number
        case .none: -1
        }
    }

    /// Goes on, once the kernel has something to say of the socket.
    func advance() {
        if session == nil, let code = number.pendingError {
            return end(.failure(FlowFailure(SystemError("connecting to \(request.remote)", code: code))))
        }
        guard let tls = request.tls, let context else { return end(.success(nil)) }
        do throws(TLSFailure) {
            if session == nil { session = try TLSSession(tls, in: context) }
        } catch {
            return end(.failure(.tls(error)))
        }
        if let session { shakeHands(session) }
    }

    /// Reads once: a server that sends without end must neither hold up the others nor outlast the limit.
    /// What it said is read before an error of the socket is: it has the reason in it.
    private func shakeHands(_ session: TLSSession) {
        send(session)
        withUnsafeTemporaryAllocation(byteCount: TLSSession.inputLimit, alignment: 1) { buffer in
            guard session.wantsInput else { return }
            let count = recv(number, buffer.baseAddress, buffer.count, 0)
            if count > 0 {
                session.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            } else if count == 0 {
                session.receiveEnd()
            } else if errno != EAGAIN, errno != EINTR {
                end(.failure(FlowFailure(SystemError("the handshake with \(request.remote)", code: errno))))
            }
        }
        send(session)
        guard result == nil else { return }
        switch session.state {
        case .handshaking: return
        case .open, .closed:
            if !session.certificateWasRequested || settlesAt != nil && session.unreadPlaintext > 0 {
                succeed(session)
            } else if settlesAt == nil {
                settlesAt = BootClock.now() + Self.refusalTime
            }
        case .failed(let failure): end(.failure(.tls(failure)))
        }
    }

    /// Takes a server for content that asked for a certificate and did not refuse to go without.
    func settle() {
        if result == nil, let session, let settlesAt, settlesAt <= BootClock.now() { succeed(session) }
    }

    private func succeed(_ session: TLSSession) {
        session.close()
        send(session)
        end(.success(session.summary))
    }

    private func send(_ session: TLSSession) {
        while session.pendingOutput > 0 {
            var sent = 0
            session.drain { bytes in
                sent = max(Glibc.send(number, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL)), 0)
                return sent
            }
            // A full socket is waited for; of a broken one, reading tells.
            if sent == 0 { return }
        }
    }

    /// Takes what has not answered by now for silent.
    func giveUp() {
        guard result == nil else { return }
        end(.failure(session == nil ? .timedOut : .tls(.timedOut)))
    }

    private func end(_ result: Result<TLSSummary?, FlowFailure>) {
        self.result = result
        ended = BootClock.now()
        socket = nil
    }
}
