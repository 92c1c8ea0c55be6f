// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// Hears from the kernel that the processes of this group wait for memory (PSI, Documentation/accounting/psi.rst), in
/// the way that systemd agrees on with its services (https://systemd.io/MEMORY_PRESSURE/). Nothing is polled.
@AgentQueue
final class MemoryPressure {
    /// The kernel tells of a span of two seconds in which some process waited for a tenth of it. Two seconds are what a
    /// process without privileges may ask for (kernel/sched/psi.c); systemd asks for the same.
    nonisolated static let standardTrigger = "some 200000 2000000"
    /// How long after the last word memory counts as short: the kernel speaks once in a span at most.
    static let span = Duration.seconds(2)

    private let file: OwnedDescriptor
    private var registration: Poller.Registration?

    /// What to watch, and what to write to it first.
    struct Source: Hashable {
        var path: String
        var trigger: [UInt8]
    }

    /// What systemd says, else the file of the process's own group; `nil` where systemd says not to, or there is none.
    ///
    /// - Parameter environment: gives the value of a variable.
    nonisolated static func source(group: String?, environment: (String) -> String?) -> Source? {
        if let path = environment("MEMORY_PRESSURE_WATCH") {
            if path == "/dev/null" { return nil }
            let trigger = environment("MEMORY_PRESSURE_WRITE").flatMap { Base64.bytes(of: $0) } ?? []
            return Source(path: path, trigger: trigger)
        }
        return group.map { Source(path: "\($0)/memory.pressure", trigger: Array("\(standardTrigger)\0".utf8)) }
    }

    /// Calls `handler` each time the kernel says that memory is short.
    ///
    /// - Throws: the kernel's refusal: `ENOENT` or `EOPNOTSUPP` where it counts no pressure, `EACCES` or `EPERM` where
    ///   this process may not ask.
    init(_ source: Source, _ handler: @escaping @AgentQueue () -> Void) throws(SystemError) {
        // Written before anything is told. A file that is only read (a FIFO of a test's) needs no right to write.
        let flags = (source.trigger.isEmpty ? O_RDONLY : O_RDWR) | O_NONBLOCK | O_CLOEXEC
        let path = source.path
        file = OwnedDescriptor(try retryingInterrupts("opening \(path)") { open(path, flags) })
        let number = file.number
        if !source.trigger.isEmpty {
            try retryingInterrupts("asking \(path) to tell of pressure") {
                write(number, source.trigger, source.trigger.count)
            }
        }
        var status = stat()
        fstat(number, &status)
        // The kernel's own files tell by "urgent" alone, and count as readable always.
        let isRegular = status.st_mode & S_IFMT == S_IFREG
        registration = try Poller.shared.register(number, isRegular ? .urgent : .readable) { [weak self] readiness in
            guard let self else { return }
            if !readiness.isDisjoint(with: [.error, .hangUp]) {
                // The group is gone, or who wrote is.
                registration?.cancel()
                return
            }
            if !isRegular {
                var bytes = [UInt8](repeating: 0, count: 4096)
                while read(number, &bytes, bytes.count) > 0 {}
            }
            handler()
        }
    }

    isolated deinit { registration?.cancel() }
}
