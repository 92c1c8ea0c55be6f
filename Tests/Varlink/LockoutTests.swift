// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtonePlatform
import DialtoneTestSupport
import Foundation
import Testing

@testable import DialtoneVarlink

/// Clients that leave descriptors behind in the socket: no connection outlives them, and nobody waits.
@Suite(.timeLimit(.minutes(3))) struct LockoutTests {
    /// A client that streams sends its own end and many others over its connection, and closes all of them. What is in
    /// the socket keeps them open until the server reads it.
    @Test(arguments: [true, false])
    func `connections whose ends were sent over a stream are ended`(isSentBehindTheCall: Bool) async throws {
        let test = await TestService()
        var ends: [CInt] = []
        for _ in 0..<200 {
            let (ours, theirs) = socketPair()
            try await onQueue { try test.server.serve(OwnedDescriptor(ours)) }
            ends.append(theirs)
        }
        let (ours, streaming) = socketPair()
        _ = write(streaming, call("Count", #","more":true"#) + "\0")
        if !isSentBehindTheCall {
            try await onQueue { try test.server.serve(OwnedDescriptor(ours)) }
            try await eventually("subscribed") { test.counters.count == 1 }
        }
        for end in ends + [streaming] { _ = pass(end, over: streaming, saying: ping("x") + "\0") }
        for end in ends + [streaming] { close(end) }
        if isSentBehindTheCall { try await onQueue { try test.server.serve(OwnedDescriptor(ours)) } }
        try await eventually("all gone") { test.server.connectionCount == 0 }
    }

    /// What a process does that connects and then ends with its own socket on the way to the server.
    enum Parting: String, CaseIterable {
        case inTheMiddleOfAMessage = #"send(b'{')"#
        case onACallThatIsAnsweredLater = #"send(b'{"method":"org.example.Luggage.Keep"}\0')"#
        case behindACallThatIsAnsweredLater = #"""
            send(b'{"method":"org.example.Luggage.Keep"}\0'); send(b'{"method":"org.example.Luggage.Keep"}\0')
            """#
        case behindAnswersThatNobodyReads = #"""
            s.settimeout(1)
            try:
                while True: s.send(b'{"method":"org.example.Luggage.Fetch","parameters":{"text":"","weight":9999}}\0')
            except OSError: pass
            s.settimeout(None)
            got = s.recv(60000, socket.MSG_PEEK)
            for _ in range(3):
                try: send(b'\0')
                except OSError: break
            """#
    }

    @Test(arguments: Parting.allCases)
    func `a connection of a process that ended is ended`(parting: Parting) async throws {
        let test = await LuggageService()
        let directory = TemporaryDirectory()
        let path = directory.path + "/socket"
        try await onQueue { try test.server.listen(at: path, mode: 0o600) }
        let script = """
            import array, socket
            s = socket.socket(socket.AF_UNIX)
            s.connect("\(path)")
            def send(text):
                own = array.array('i', [s.fileno()])
                s.setblocking(False)
                s.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, own)])
                s.setblocking(True)
            s.send(b'{"method":"org.example.Luggage.Walk"}\\0')
            s.recv(1000)
            \(parting.rawValue)
            """
        let result = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: Program.run("/usr/bin/env", ["python3", "-c", script]))
            }
        }
        #expect(result.status == 0, "\(result)")
        try await eventually("gone") { test.server.connectionCount == 0 }
    }

    /// Where a socket that lingers, for a thousand seconds, may be when the last descriptor of it is closed.
    enum Place: CaseIterable {
        case beyondWhatACallMayBring, inAConnectionThatIsClosed, inAConnectionThatIsRefused
        case inASocketThatNobodyAskedFor, onAByteOutOfBand
    }

    @Test(arguments: Place.allCases)
    func `a socket that lingers holds up nobody wherever it is`(place: Place) async throws {
        let lingering = [try LingeringSocket(), try LingeringSocket()]
        var limits = VarlinkServer.Limits()
        limits.descriptorsPerCall = 1
        if place == .inAConnectionThatIsRefused { limits.messageBytes = 10 }
        let test = await TestService(limits: limits)
        let (ours, theirs) = socketPair()
        let client = RawClient(OwnedDescriptor(theirs))
        switch place {
        case .beyondWhatACallMayBring:
            client.send(ping("x"), passing: lingering.map(\.number))
        case .inAConnectionThatIsClosed:
            client.send("no call")
            client.send(ping("x"), passing: [lingering[0].number])
        case .inAConnectionThatIsRefused:
            client.send(ping("longer than ten bytes"))
            client.send(ping("x"), passing: [lingering[0].number])
        case .inASocketThatNobodyAskedFor:
            client.send(ping("x"), passing: [lingering[0].inAnotherSocket()])
        case .onAByteOutOfBand:
            #expect(lingering[0].pass(over: theirs, outOfBand: true) == 1)
            client.send(ping("x"))
        }
        // A user of its own: what others have had must not wait for it to be closed.
        let peer = VarlinkPeer(uid: 71_000, gid: 71_000, pid: getpid())
        try await onQueue { try test.server.serve(OwnedDescriptor(ours), for: peer) }
        let answer = await client.receive()
        switch place {
        case .inASocketThatNobodyAskedFor: #expect(answer == pong("x"))
        case .onAByteOutOfBand: print("a byte out of band, with a descriptor on it: \(answer ?? "hung up")")
        default: #expect(answer == nil)
        }
        let elsewhere = await TestService()
        let other = try await elsewhere.client()
        other.send(ping("here"))
        expect(await other.receive(), is: pong("here"))
        withExtendedLifetime(lingering) {}
    }
}

/// Sends `text` with a descriptor riding on it, and says whether the kernel took it.
private func pass(_ descriptor: CInt, over socket: CInt, saying text: String) -> Bool {
    var bytes = Array(text.utf8)
    var control: [UInt64] = [20, 0, 0]
    return control.withUnsafeMutableBytes { control in
        control.storeBytes(of: CInt(SOL_SOCKET), toByteOffset: 8, as: CInt.self)
        control.storeBytes(of: CInt(SCM_RIGHTS), toByteOffset: 12, as: CInt.self)
        control.storeBytes(of: descriptor, toByteOffset: 16, as: CInt.self)
        return bytes.withUnsafeMutableBytes { bytes in
            var vector = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
            return withUnsafeMutablePointer(to: &vector) {
                var header = msghdr()
                header.msg_iov = $0
                header.msg_iovlen = 1
                header.msg_control = control.baseAddress
                header.msg_controllen = control.count
                return sendmsg(socket, &header, CInt(MSG_NOSIGNAL | MSG_DONTWAIT)) == bytes.count
            }
        }
    }
}

private func write(_ socket: CInt, _ text: String) -> Int {
    let bytes = Array(text.utf8)
    return Glibc.send(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL))
}
