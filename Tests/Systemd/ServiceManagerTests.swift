// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Foundation
import Testing

@testable import DialtoneSystemd

/// The manager's end of `$NOTIFY_SOCKET`. It changes the environment, so it is made in exit tests only, each of which
/// is a process of its own.
final class ManagerStub {
    private let path = NSTemporaryDirectory() + "notify.\(getpid())"
    private let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)

    init() {
        let bound = withUnixAddress(path) { bind(descriptor, $0, $1) }
        precondition(bound == 0, "bind: \(errno)")
        setenv("NOTIFY_SOCKET", path, 1)
    }

    deinit {
        close(descriptor)
        unlink(path)
    }

    /// The next message, which must be there already, and the descriptor that came with it.
    func receiveDescriptor() -> (text: String, descriptor: CInt?)? {
        var text = [UInt8](repeating: 0, count: 4096)
        var control = [UInt8](repeating: 0, count: 128)
        let (count, length) = text.withUnsafeMutableBytes { text in
            control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: text.baseAddress, iov_len: text.count)
                return withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    (message.msg_iov, message.msg_iovlen) = (part, 1)
                    (message.msg_control, message.msg_controllen) = (control.baseAddress, control.count)
                    return (recvmsg(descriptor, &message, CInt(MSG_DONTWAIT)), message.msg_controllen)
                }
            }
        }
        guard count >= 0 else { return nil }
        // struct cmsghdr: a length of eight bytes, level and type of four each, and then the descriptors.
        // SCM_RIGHTS is 1, wherever the C library defines it.
        let passed = control.withUnsafeBytes { control -> CInt? in
            guard length >= 20, control.load(fromByteOffset: 12, as: CInt.self) == 1 else {
                return nil
            }
            return control.load(fromByteOffset: 16, as: CInt.self)
        }
        return (String(decoding: text[..<count], as: UTF8.self), passed)
    }

    /// The next message, which must be there already.
    func receive() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
    }
}

func withUnixAddress<T>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> T) -> T {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
}

struct ServiceManagerTests {
    @Test func `each notice is one message`() async {
        await #expect(processExitsWith: .success) {
            let manager = ManagerStub()
            let isTold = try ServiceManager.notifyReady()
            #expect(isTold)
            #expect(manager.receive() == "READY=1")
            try ServiceManager.notifyReady(status: "3 connections")
            #expect(manager.receive() == "READY=1\nSTATUS=3 connections")
            try ServiceManager.notifyStopping()
            #expect(manager.receive() == "STOPPING=1")
            try ServiceManager.notifyWatchdog()
            #expect(manager.receive() == "WATCHDOG=1")
            #expect(manager.receive() == nil)
        }
    }

    @Test func `a status stays on its line`() async {
        await #expect(processExitsWith: .success) {
            let manager = ManagerStub()
            try ServiceManager.notifyStatus("one\nMAINPID=1\r\ntwo")
            #expect(manager.receive() == "STATUS=one MAINPID=1 two")
        }
    }

    @Test func `a reload carries the moment it began`() async {
        await #expect(processExitsWith: .success) {
            let manager = ManagerStub()
            let before = DispatchTime.now().uptimeNanoseconds / 1000
            try ServiceManager.notifyReloading()
            let lines = try #require(manager.receive()).split(separator: "\n")
            #expect(lines.first == "RELOADING=1")
            let value = try #require(lines.last?.split(separator: "=").last.flatMap { UInt64($0) })
            #expect(lines.last?.hasPrefix("MONOTONIC_USEC=") == true)
            #expect((before...DispatchTime.now().uptimeNanoseconds / 1000).contains(value))
        }
    }

    @Test func `a descriptor is stored with its message`() async {
        await #expect(processExitsWith: .success) {
            let manager = ManagerStub()
            let file = try OwnedDescriptor.fileInMemory("stored")
            try ServiceManager.store([file.number], as: "f7")
            let (text, copy) = try #require(manager.receiveDescriptor())
            #expect(text == "FDSTORE=1\nFDNAME=f7\nFDPOLL=0")
            // The very same file.
            _ = write(file.number, "x", 1)
            var status = stat()
            #expect(fstat(try #require(copy), &status) == 0 && status.st_size == 1)
            try ServiceManager.removeStored("f7")
            #expect(manager.receive() == "FDSTOREREMOVE=1\nFDNAME=f7")
            #expect(manager.receive() == nil)
        }
    }

    @Test func `the manager says how many it keeps`() async {
        await #expect(processExitsWith: .success) {
            let manager = ManagerStub()
            #expect(ServiceManager.storeLimit == 0)
            setenv("FDSTORE", "4096", 1)
            #expect(ServiceManager.storeLimit == 4096)
            for text in ["-1", "many", ""] {
                setenv("FDSTORE", text, 1)
                #expect(ServiceManager.storeLimit == 0)
            }
            setenv("FDSTORE", "4096", 1)
            unsetenv("NOTIFY_SOCKET")
            #expect(ServiceManager.storeLimit == 0, "inherited from a parent that had a manager")
            withExtendedLifetime(manager) {}
        }
    }

    @Test func `without a manager nothing is sent and nothing fails`() async {
        await #expect(processExitsWith: .success) {
            unsetenv("NOTIFY_SOCKET")
            let isTold = try ServiceManager.notifyReady()
            #expect(!isTold)
            #expect(ServiceManager.watchdogTimeout == nil)
        }
    }

    @Test func `a manager that is gone is an error`() async {
        await #expect(processExitsWith: .success) {
            setenv("NOTIFY_SOCKET", NSTemporaryDirectory() + "nobody.\(getpid())", 1)
            let error = #expect(throws: SystemError.self) { try ServiceManager.notifyReady() }
            #expect(error?.code == ENOENT)
            #expect(error?.operation == "telling the service manager READY=1")
        }
    }

    @Test func `the watchdog is asked for by the manager of this process only`() async {
        await #expect(processExitsWith: .success) {
            setenv("WATCHDOG_USEC", "600000000", 1)
            #expect(ServiceManager.watchdogTimeout == .seconds(600))
            setenv("WATCHDOG_PID", "\(getpid())", 1)
            #expect(ServiceManager.watchdogTimeout == .seconds(600))
            setenv("WATCHDOG_PID", "1", 1)
            #expect(ServiceManager.watchdogTimeout == nil)
        }
    }
}

@AgentQueue
@Suite(.timeLimit(.minutes(1)))
struct WatchdogTests {
    @Test func `it pings at once and then again and again`() async {
        var pings = 0
        var watchdog: Watchdog?
        await withCheckedContinuation { continuation in
            watchdog = Watchdog(timeout: .milliseconds(2)) {
                pings += 1
                if pings == 3 { continuation.resume() }
            }
            watchdog?.start()
        }
        watchdog?.cancel()
    }

    @Test func `it pings twice in each timeout`() {
        #expect(Watchdog(timeout: .seconds(600)) {}.interval == .seconds(300))
    }

    @Test func `after cancel it is silent`() async {
        var pings = 0
        let watchdog = Watchdog(timeout: .milliseconds(2)) { pings += 1 }
        watchdog.start()
        watchdog.cancel()
        await withCheckedContinuation { continuation in
            // Due after the ping would have been, and so in the order of the timers behind it.
            _ = Timers.shared.schedule(after: .milliseconds(10)) { continuation.resume() }
        }
        #expect(pings == 1)
    }
}
