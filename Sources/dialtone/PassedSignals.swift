// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// The signals that this process passes on to a command that it runs, instead of ending by them.
///
/// They are handled, not blocked and read (signalfd(2)): the main thread of a program with an asynchronous `main` waits
/// in sigsuspend(2) with an empty mask, and takes every signal there is.
@AgentQueue
final class PassedSignals {
    private static let all = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]

    private let reading: OwnedDescriptor
    private var registration: Poller.Registration?

    /// Keeps the signals from now on. Those that are ignored, as under nohup(1), stay so, here and for the command.
    init() throws(SystemError) {
        let ends = try OwnedDescriptor.socketPair()
        reading = OwnedDescriptor(ends.0)
        caughtSignals = ends.1
        for number in Self.all {
            var action = sigaction()
            action.__sigaction_handler.sa_sigaction = noteSignal
            action.sa_flags = SA_SIGINFO | SA_RESTART
            var before = sigaction()
            sigaction(number, nil, &before)
            // The handler is a number here: SIG_IGN, which is 1, and nothing is called by it.
            let isIgnored = unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) == 1
            if !isIgnored { sigaction(number, &action, nil) }
        }
    }

    /// Passes them on, also those that have come already.
    func pass(to process: pid_t) {
        let number = reading.number
        registration = try? Poller.shared.register(number, .readable) { _ in
            var signal: UInt8 = 0
            while recv(number, &signal, 1, CInt(MSG_DONTWAIT)) == 1 { kill(process, CInt(signal)) }
        }
    }

    isolated deinit { registration?.cancel() }
}

/// Where ``noteSignal(_:_:_:)`` writes. Set once, before there is a handler.
private nonisolated(unsafe) var caughtSignals: CInt = -1

/// The handler: writes the signal's number, unless a key of the terminal made it, which goes to the command as well.
private func noteSignal(_ number: CInt, _ info: UnsafeMutablePointer<siginfo_t>?, _ context: UnsafeMutableRawPointer?) {
    guard info?.pointee.si_code != CInt(SI_KERNEL) else { return }
    let before = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = send(caughtSignals, &byte, 1, CInt(MSG_DONTWAIT) | CInt(MSG_NOSIGNAL))
    errno = before
}
