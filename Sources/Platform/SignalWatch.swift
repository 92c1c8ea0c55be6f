// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc

/// Signals as events of the agent's queue (signalfd(2)), so that a handler may do anything that other code may.
@AgentQueue
package final class SignalWatch {
    private let descriptor: OwnedDescriptor
    private var registration: Poller.Registration?

    /// Keeps `signals` from their default action in this thread and all it starts from now on. To be called by `main`
    /// before anything starts a thread: a signal goes to any thread that does not block it.
    package nonisolated static func block(_ signals: [CInt]) {
        var set = set(of: signals)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Calls `handler` with each of `signals`, which were blocked before, as it comes.
    ///
    /// - Throws: the kernel's refusal of a descriptor, such as `EMFILE`.
    package init(_ signals: [CInt], _ handler: @escaping @AgentQueue (CInt) -> Void) throws(SystemError) {
        var set = Self.set(of: signals)
        let number = try retryingInterrupts("watching for signals") {
            signalfd(-1, &set, CInt(SFD_CLOEXEC) | CInt(SFD_NONBLOCK))
        }
        descriptor = OwnedDescriptor(number)
        registration = try Poller.shared.register(number, .readable) { _ in
            var info = signalfd_siginfo()
            while read(number, &info, MemoryLayout.size(ofValue: info)) == MemoryLayout.size(ofValue: info) {
                handler(CInt(info.ssi_signo))
            }
        }
    }

    private nonisolated static func set(of signals: [CInt]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }
}
