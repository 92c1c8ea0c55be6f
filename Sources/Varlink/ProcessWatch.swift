// SPDX-License-Identifier: Apache-2.0

internal import Platform

/// Tells of the end of a process, once.
@AgentQueue
final class ProcessWatch {
    private let process: OwnedDescriptor
    private var registration: Poller.Registration?

    /// Watches the process of a pidfd, and calls `handler` when it has ended: also when it has already, but never from
    /// inside this function.
    init(_ process: consuming OwnedDescriptor, _ handler: @escaping @AgentQueue () -> Void) throws(SystemError) {
        self.process = process
        registration = try Poller.shared.register(self.process.number, .readable) { [weak self] _ in
            self?.registration?.cancel()
            handler()
        }
    }

    isolated deinit { registration?.cancel() }
}
