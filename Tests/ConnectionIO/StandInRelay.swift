// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneRelayMessages
import DialtoneTLSTestSupport
import DialtoneTestSupport
import Glibc
import Testing

@testable import DialtoneConnection
@testable import DialtoneConnectionIO

/// `dialtone-tls`, worked by the test step by step: it can stand still between any two system calls. What the server
/// sends it passes on as it is.
@AgentQueue
final class StandInRelay {
    /// A flow that it has.
    final class Served {
        private var socket: OwnedDescriptor?
        private var stream: OwnedDescriptor?
        private var countsFile: OwnedDescriptor?
        private var channel: MessageSocket?
        private let place: StreamCounts.Place
        /// How many bytes it has taken from the TCP socket.
        private(set) var received: UInt64 = 0
        var counts = StreamCounts()

        fileprivate init(_ channel: consuming MessageSocket) throws {
            var entry = pollfd(fd: channel.number, events: Int16(POLLIN), revents: 0)
            try #require(poll(&entry, 1, 30_000) == 1, "no request came")
            guard case .message(let bytes, var descriptors) = channel.receive() else {
                throw NothingCame(description: "no request came")
            }
            place = try SecuringRequest(bytes[...]).place
            socket = descriptors.takeFirst()
            stream = descriptors.takeFirst()
            countsFile = descriptors.takeFirst()
            self.channel = consume channel
        }

        private func number(_ descriptor: borrowing OwnedDescriptor?) -> CInt {
            switch descriptor {
            case .some(let descriptor): descriptor.number
            case .none: -1
            }
        }

        func say(_ word: RelayWord) throws { try channel?.send(word.encoded) }

        /// Takes the next so many bytes from the TCP socket.
        func take(_ count: Int) throws {
            var buffer = [UInt8](repeating: 0, count: count)
            let got = recv(number(socket), &buffer, count, CInt(MSG_WAITALL))
            try #require(got == count, "\(got) bytes")
            received += UInt64(count)
        }

        /// Puts plaintext into the pair, and writes down what is there.
        func deliver(_ text: String) throws {
            try #require(send(number(stream), text, text.utf8.count, CInt(MSG_NOSIGNAL)) == text.utf8.count)
            counts.delivered += UInt64(text.utf8.count)
            count()
        }

        /// Writes its counts down.
        func count() {
            switch countsFile {
            case .some(let file): counts.write(to: file, at: place)
            case .none: break
            }
        }

        /// It is killed.
        func die() {
            socket = nil
            stream = nil
            countsFile = nil
            channel = nil
        }
    }

    /// The other ends of the channels, in the order in which they were made.
    private var asked: [CInt] = []
    private let files = TestFiles()
    private(set) lazy var access = RelayAccess { [weak self] () throws(SystemError) in
        guard let self else { throw SystemError("reaching dialtone-tls", code: ENOENT) }
        let (ours, theirs) = try OwnedDescriptor.socketPair(keepingMessagesApart: true)
        asked.append(ours)
        return RelayAccess.Channel(OwnedDescriptor(theirs), outlivesAgent: true)
    }

    isolated deinit { for number in asked { close(number) } }

    /// A policy whose files can be opened.
    private(set) lazy var policy: TLSPolicy = {
        var policy = TLSPolicy()
        policy.authorities = files.write("", to: "authority.pem")
        return policy
    }()

    /// The next flow that it was asked for, secured.
    func secure() throws -> Served {
        try #require(!asked.isEmpty, "nobody asked for a flow")
        let served = try Served(MessageSocket(OwnedDescriptor(asked.removeFirst())))
        served.counts.settled = .init(bytes: 0)
        served.count()
        try served.say(.secured(TLSSummary(version: .v13, cipher: "none", assurance: .verified, isResumed: false)))
        return served
    }
}
