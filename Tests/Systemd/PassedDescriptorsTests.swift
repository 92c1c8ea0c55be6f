// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Testing

@testable import Systemd

struct PassedDescriptorsTests {
    /// Puts descriptors in the places where the manager does, from 3 on, and says so in the environment. For exit tests.
    private static func pass(_ descriptors: [(name: String, number: CInt)]) {
        // Out of the way first: an original may lie where a copy is to go.
        let copies = descriptors.map { fcntl($0.number, F_DUPFD, 100) }
        for (index, copy) in copies.enumerated() { dup2(copy, CInt(3 + index)) }
        setenv("LISTEN_FDS", "\(descriptors.count)", 1)
        setenv("LISTEN_PID", "\(getpid())", 1)
        setenv("LISTEN_FDNAMES", descriptors.map(\.name).joined(separator: ":"), 1)
    }

    private static func unixListener() -> CInt {
        let path = NSTemporaryDirectory() + "listen.\(getpid())"
        unlink(path)
        let number = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        precondition(withUnixAddress(path) { bind(number, $0, $1) } == 0 && listen(number, 8) == 0)
        return number
    }

    private static func take(_ name: String, from passed: inout PassedDescriptors) throws -> CInt? {
        guard let descriptor = try passed.takeUnixListener(named: name) else { return nil }
        return descriptor.release()
    }

    @Test func aListenerIsTakenByItsNameOnce() async {
        await #expect(processExitsWith: .success) {
            Self.pass([("varlink", Self.unixListener())])
            var passed = try PassedDescriptors.receive()
            #expect(passed.names == ["varlink"])
            let other = try Self.take("other", from: &passed)
            #expect(other == nil)
            let first = try Self.take("varlink", from: &passed)
            #expect(first == 3)
            #expect(fcntl(3, F_GETFD) == FD_CLOEXEC)
            let second = try Self.take("varlink", from: &passed)
            #expect(second == nil)
            for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] { #expect(getenv(name) == nil, "\(name)") }
        }
    }

    @Test func whatIsNoListenerIsRefusedAndClosed() async {
        await #expect(processExitsWith: .success) {
            Self.pass([
                ("varlink", socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)), ("varlink", open("/dev/null", O_RDWR)),
            ])
            var passed = try PassedDescriptors.receive()
            for number in CInt(3)...4 {
                var refusal: SystemError?
                do throws(SystemError) {
                    _ = try passed.takeUnixListener(named: "varlink")
                } catch {
                    refusal = error
                }
                #expect(refusal?.code == ENOTSOCK)
                #expect(fcntl(number, F_GETFD) == -1)
            }
        }
    }

    @Test func whatNobodyTakesIsClosed() async {
        await #expect(processExitsWith: .success) {
            Self.pass([("unknown", Self.unixListener())])
            do {
                let passed = try PassedDescriptors.receive()
                #expect(passed.names == ["unknown"])
            }
            #expect(fcntl(3, F_GETFD) == -1)
        }
    }

    @Test func whatWasPassedToAnotherProcessIsNotOurs() async {
        await #expect(processExitsWith: .success) {
            Self.pass([("varlink", Self.unixListener())])
            setenv("LISTEN_PID", "1", 1)
            let passed = try PassedDescriptors.receive()
            #expect(passed.names.isEmpty)
            #expect(fcntl(3, F_GETFD) != -1)
        }
    }
}
