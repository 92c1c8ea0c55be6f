// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor

/// A client's end of a WebSocket (RFC 6455), without I/O: bytes in, messages out, and the bytes that answer them.
///
/// Each frame is masked with four bytes of the generator, which draws from the kernel's (section 10.3); a test hands in
/// one with a seed, so that the value says the same each time.
struct WebSocketClient: Sendable {
    /// A generator of random numbers that the value owns.
    typealias Random = any RandomNumberGenerator & Sendable

    /// What came of bytes.
    enum Event: Hashable, Sendable {
        /// The server accepted the upgrade: messages can be sent.
        case opened
        /// A message of text, UTF-8.
        case text([UInt8])
        /// A message of bytes.
        case binary([UInt8])
        /// The server does not make a WebSocket of it. Nothing more is to be sent.
        case refused(WebSocketRefusal)
        /// The server said goodbye, by this code, 1005 for none. Nothing more is to be sent.
        case closed(UInt16, String)
        /// The server broke the protocol; how. Nothing more is to be sent.
        case broken(String)
    }

    /// From an upgrade's request to its end.
    private enum State: Hashable {
        /// Nothing was said. Becomes `upgrading` or, where somebody else upgraded, `open`.
        case idle
        /// The request with this nonce was sent. Becomes `open` or `over`.
        case upgrading(key: String)
        /// Messages come and go. Becomes `over`.
        case open
        /// Nothing more is sent or read.
        case over
    }

    /// The request to make.
    var upgrade: WebSocketUpgrade
    /// Also draws what the server's value needs.
    var random: Random
    private var state = State.idle
    private var reader = WebSocketReader()
    /// What has come of the answer to the upgrade.
    private var head: [UInt8] = []
    /// The nonce for the openings of this session.
    private var parkedKey = ""
    /// The mask for the openings of this session.
    private var parkedMask: UInt32 = 0

    /// A socket on which nothing was said.
    init(_ upgrade: WebSocketUpgrade, random: Random) {
        self.upgrade = upgrade
        self.random = random
    }

    /// Whether messages can be sent, and none was read by half.
    var isBetweenMessages: Bool { state == .open && reader.isBetweenMessages }

    /// Begins on a new socket.
    ///
    /// - Returns: what is to be sent.
    mutating func begin() -> [UInt8] {
        reset()
        let key = WebSocketUpgrade.key(using: &random)
        state = .upgrading(key: key)
        return upgrade.request(key: key)
    }

    /// Goes on with a socket that was upgraded by an opening, or that was parked between two messages.
    mutating func adopt() {
        reset()
        state = .open
    }

    /// The socket is over.
    mutating func end() {
        reset()
        state = .over
    }

    private mutating func reset() {
        (reader, head) = (WebSocketReader(), [])
        parkedKey = WebSocketUpgrade.key(using: &random)
        parkedMask = UInt32.random(in: .min ... .max, using: &random)
    }

    /// Reads on; `nil` where the bytes are used up, or nothing more is to be read.
    ///
    /// - Parameters:
    ///   - bytes: loses what was read.
    ///   - output: gets what answers it.
    mutating func next(_ bytes: inout ArraySlice<UInt8>, _ output: inout [UInt8]) -> Event? {
        switch state {
        case .idle, .over: return nil
        case .upgrading(let key):
            guard let answer = readHead(&bytes, key) else { return nil }
            return upgraded(answer)
        case .open: break
        }
        do {
            while let item = try reader.next(&bytes) {
                switch item {
                case .text(let content): return .text(content)
                case .binary(let content): return .binary(content)
                case .ping(let content): output += frame(0x8A, content)
                case .close(let code, let reason):
                    // Its own code comes back (section 5.5.1); 1005 stands for a frame without one.
                    output += close(code == 1005 ? nil : code)
                    return .closed(code, reason)
                }
            }
            return nil
        } catch {
            output += close(error.code)
            return .broken(error.reason)
        }
    }

    private mutating func upgraded(_ answer: WebSocketUpgrade.Answer) -> Event {
        state = answer == .accepted ? .open : .over
        return switch answer {
        case .accepted: .opened
        case .refused(let refusal): .refused(refusal)
        case .broken(let reason): .broken(reason)
        }
    }

    private mutating func readHead(_ bytes: inout ArraySlice<UInt8>, _ key: String) -> WebSocketUpgrade.Answer? {
        while let byte = bytes.popFirst() {
            head.append(byte)
            if byte == 10, head.suffix(4) == WebSocketUpgrade.endOfHead[...] {
                defer { head = [] }
                return WebSocketUpgrade.answer(head, to: key)
            }
            guard head.count < WebSocketUpgrade.longestHead else {
                return .broken("the answer to the upgrade has no end within \(head.count) bytes")
            }
        }
        return nil
    }

    /// A message of text; nothing where none can be sent.
    mutating func message(_ text: [UInt8]) -> [UInt8] { state == .open ? frame(0x81, text) : [] }

    /// Says goodbye (section 7.1.2); nothing where nothing can be said. Nothing more is sent or read.
    ///
    /// - Parameter code: of section 7.4.1; `nil` for none.
    mutating func close(_ code: UInt16?) -> [UInt8] {
        defer { state = .over }
        guard state == .open else { return [] }
        return frame(0x88, code.map { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } ?? [])
    }

    private mutating func frame(_ head: UInt8, _ content: [UInt8]) -> [UInt8] {
        Self.frame(head, content, mask: UInt32.random(in: .min ... .max, using: &random))
    }

    /// A frame, masked (section 5.3).
    private static func frame(_ head: UInt8, _ content: [UInt8], mask: UInt32) -> [UInt8] {
        let mask = (0..<4).map { UInt8(truncatingIfNeeded: mask >> (24 - 8 * $0)) }
        var bytes = [head]
        switch content.count {
        case ..<126: bytes.append(0x80 | UInt8(content.count))
        case ..<65536: bytes += [0x80 | 126, UInt8(content.count >> 8), UInt8(content.count & 0xFF)]
        default: bytes += [0x80 | 127] + (0..<8).map { UInt8(truncatingIfNeeded: content.count >> (56 - 8 * $0)) }
        }
        return bytes + mask + content.enumerated().map { $0.element ^ mask[$0.offset % 4] }
    }

    // MARK: - What the machine's agent says on new sockets

    /// The step of an opening that upgrades.
    ///
    /// The nonce is the same on each socket until the next session, and so is the answer. The nonce is there so that a
    /// cache between the two cannot answer for the server (section 1.3); inside TLS there is none, and a server that
    /// remembers the nonce of an hour ago is the server.
    var parkedUpgrade: PushParking.OpeningStep {
        PushParking.OpeningStep(
            send: upgrade.request(key: parkedKey), begins: WebSocketUpgrade.accepted,
            until: WebSocketUpgrade.endOfHead, contains: Array(WebSocketUpgrade.acceptance(of: parkedKey).utf8))
    }

    /// The step of an opening that says a text, or waits for the server where there is none, and expects a message of
    /// text that holds this.
    ///
    /// Its mask is the same on each socket until the next session. Masks are there so that nobody who chooses what a
    /// client says can choose the bytes on the line (section 10.3); this text nobody chooses but this program.
    func parkedMessage(_ text: [UInt8], contains: [UInt8]) -> PushParking.OpeningStep {
        PushParking.OpeningStep(
            send: text.isEmpty ? [] : Self.frame(0x81, text, mask: parkedMask), begins: [0x81], contains: contains,
            isFrame: true)
    }
}
