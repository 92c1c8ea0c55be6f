// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Foundation
import Testing

@testable import DialtoneSystemd

struct PassedDescriptorsTests {
    /// A descriptor under a number that nobody else in this process is given, so that once it is closed it stays so.
    private static func reserved(_ number: CInt, at place: CInt) -> CInt {
        precondition(dup2(number, place) == place)
        close(number)
        return place
    }

    private static func unixListener() -> CInt {
        let path = NSTemporaryDirectory() + "listen.\(UUID().uuidString.prefix(8))"
        let number = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        precondition(withUnixAddress(path) { bind(number, $0, $1) } == 0 && listen(number, 8) == 0)
        unlink(path)
        return number
    }

    private static func isOpen(_ number: CInt) -> Bool { fcntl(number, F_GETFD) != -1 }

    /// Sees to it that descriptor 3 is open and stays so. It may be the C library's for a moment, which counts the
    /// processors when a thread begins (a file of /sys), or the test library's for good.
    private static func occupyThree() {
        for _ in 0..<100_000 {
            let number = open("/dev/null", O_RDONLY)
            if number == 3 { return }
            // Below are the standard ones, which may have been closed.
            if number > 3 { close(number) }
            sched_yield()
        }
    }

    /// The number of what is taken, left open; -1 when there is nothing of the name.
    private static func take(_ name: String, from passed: inout PassedDescriptors) throws -> CInt {
        guard let descriptor = try passed.takeUnixListener(named: name) else { return -1 }
        return descriptor.release()
    }

    @Test func `a listener is taken by its name once`() throws {
        let listener = Self.reserved(Self.unixListener(), at: 901)
        var passed = PassedDescriptors(remaining: [("varlink", listener)])
        #expect(passed.names == ["varlink"])
        let taken = try ["other", "varlink", "varlink"].map { try Self.take($0, from: &passed) }
        #expect(taken == [-1, 901, -1])
        #expect(passed.names.isEmpty)
        #expect(Self.isOpen(901))
        close(901)
    }

    @Test func `what is no listener is refused and closed`() {
        let notListening = Self.reserved(socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0), at: 902)
        let noSocket = Self.reserved(open("/dev/null", O_RDWR), at: 903)
        var passed = PassedDescriptors(remaining: [("varlink", notListening), ("varlink", noSocket)])
        for number in [notListening, noSocket] {
            let error = #expect(throws: SystemError.self) { try Self.take("varlink", from: &passed) }
            #expect(error?.code == ENOTSOCK)
            #expect(!Self.isOpen(number))
        }
    }

    @Test func `what was stored is taken by its name whatever it is`() {
        let first = Self.reserved(open("/dev/null", O_RDWR), at: 905)
        let second = Self.reserved(socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0), at: 906)
        var passed = PassedDescriptors(remaining: [("f1", first), ("state", second)])
        var taken: [CInt] = []
        for name in ["f1", "f1", "state"] {
            if let descriptor = passed.takeStored(named: name) { taken.append(descriptor.release()) }
        }
        #expect(taken == [905, 906])
        for number in taken { close(number) }
    }

    @Test func `what nobody takes is closed`() {
        do { _ = PassedDescriptors(remaining: [("unknown", Self.reserved(Self.unixListener(), at: 904))]) }
        #expect(!Self.isOpen(904))
    }

    // What libsystemd finds starts at descriptor 3, which in a test is somebody else's: it is only looked at, and given
    // up before it could be closed.

    @Test func `the names are those of the environment which is then cleared`() async {
        await #expect(processExitsWith: .success) {
            Self.occupyThree()
            setenv("LISTEN_FDS", "1", 1)
            setenv("LISTEN_PID", "\(getpid())", 1)
            setenv("LISTEN_FDNAMES", "varlink", 1)
            var passed = try PassedDescriptors.receive()
            #expect(passed.remaining.map(\.number) == [3])
            #expect(passed.names == ["varlink"])
            passed.remaining = []
            #expect(fcntl(3, F_GETFD) == FD_CLOEXEC)
            for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] { #expect(getenv(name) == nil, "\(name)") }
        }
    }

    @Test func `what was passed to another process is not ours`() async {
        await #expect(processExitsWith: .success) {
            setenv("LISTEN_FDS", "1", 1)
            setenv("LISTEN_PID", "1", 1)
            let names = try PassedDescriptors.receive().names
            #expect(names.isEmpty)
        }
    }

    @Test func `variables that make no sense are an error`() async {
        await #expect(processExitsWith: .success) {
            setenv("LISTEN_FDS", "many", 1)
            setenv("LISTEN_PID", "\(getpid())", 1)
            var refusal: SystemError?
            do throws(SystemError) { _ = try PassedDescriptors.receive() } catch { refusal = error }
            #expect(refusal?.code == EINVAL)
        }
    }
}
