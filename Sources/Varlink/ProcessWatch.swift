// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform

/// Tells of the end of a process, once.
@AgentQueue
final class ProcessWatch {
    private let process: OwnedDescriptor
    private var registration: Poller.Registration?

    /// Watches the process of a pidfd, and calls `handler` when it has ended: also when it has already, but never from
    /// inside this function. Not when the watch is gone.
    init(_ process: consuming OwnedDescriptor, _ handler: @escaping @AgentQueue () -> Void) throws(SystemError) {
        self.process = process
        registration = try Poller.shared.register(self.process.number, .readable) { [weak self] _ in
            // An isolated deinit may come a turn after the last reference went; nobody is to be told then.
            guard let self else { return }
            registration?.cancel()
            handler()
        }
    }

    isolated deinit { registration?.cancel() }
}
