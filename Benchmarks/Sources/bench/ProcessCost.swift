// SPDX-License-Identifier: Apache-2.0

internal import DialtoneLabSupport
internal import FoundationEssentials
internal import Glibc

/// What the kernel has on a process in `/proc`.
enum ProcessCost {
    /// Memory in KiB, from `smaps_rollup`.
    struct Memory: Sendable {
        /// Everything mapped and present, the program's own text and shared libraries included.
        var resident: Int
        /// What would be free again if the process ended.
        var privately: Int

        /// Both, for the table.
        var text: String { "\(Self.megabytes(resident)), \(Self.megabytes(privately))" }

        /// What each of `count` connections adds, by this and by what was there without them.
        func growth(from other: Memory, over count: Int) -> String {
            "\(decimal(Double(resident - other.resident) / Double(count))) KB, "
                + "\(decimal(Double(privately - other.privately) / Double(count))) KB"
        }

        private static func megabytes(_ kilobytes: Int) -> String { "\(decimal(Double(kilobytes) / 1024)) MiB" }
    }

    /// The memory of a process, libraries it shares with others counted in full.
    static func memory(of processID: CInt) throws -> Memory {
        let fields = try numbers(in: "/proc/\(processID)/smaps_rollup")
        return Memory(
            resident: fields["Rss"] ?? 0, privately: (fields["Private_Clean"] ?? 0) + (fields["Private_Dirty"] ?? 0))
    }

    /// The processes that it has started and not outlived.
    static func children(of processID: CInt) throws -> [CInt] {
        let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(processID)/task")
        return threads.flatMap { thread in
            let text = FileManager.default.contents(atPath: "/proc/\(processID)/task/\(thread)/children") ?? Data()
            return String(decoding: text, as: UTF8.self).split(separator: " ").compactMap { CInt($0) }
        }
    }

    /// How often its threads gave the processor up or lost it. Threads that ended are not counted.
    static func switches(of processID: CInt) throws -> Int {
        let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(processID)/task")
        return try threads.reduce(0) { sum, thread in
            let fields = try numbers(in: "/proc/\(processID)/task/\(thread)/status")
            return sum + (fields["voluntary_ctxt_switches"] ?? 0) + (fields["nonvoluntary_ctxt_switches"] ?? 0)
        }
    }

    /// The processor time that its threads have had, in nanoseconds: the first field of `schedstat`. Threads that ended
    /// are not counted.
    static func runTime(of processID: CInt) throws -> Int {
        let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(processID)/task")
        return try threads.reduce(0) { sum, thread in
            let path = "/proc/\(processID)/task/\(thread)/schedstat"
            let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
            return sum + (text.split(separator: " ").first.flatMap { Int($0) } ?? 0)
        }
    }

    /// The processor time that a process has had, its own and the kernel's for it, in hundredths of a second (USER_HZ).
    static func time(of processID: CInt) throws -> Int {
        // utime and stime are the fields 14 and 15.
        try fields(of: processID).dropFirst(11).prefix(2).reduce(0) { $0 + (Int($1) ?? 0) }
    }

    /// Whether a signal has stopped it.
    static func isStopped(_ processID: CInt) throws -> Bool { try fields(of: processID).first == "T" }

    /// What `/proc/PID/stat` has from the third field on. The second, the name in parentheses, may hold blanks.
    private static func fields(of processID: CInt) throws -> [Substring] {
        let text = String(decoding: try Data(contentsOf: URL(filePath: "/proc/\(processID)/stat")), as: UTF8.self)
        return text.split(separator: ")").last?.split(separator: " ") ?? []
    }

    /// The lines of the form `Name: number …`.
    private static func numbers(in path: String) throws -> [String: Int] {
        let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        var numbers: [String: Int] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(maxSplits: 1) { $0 == ":" }
            guard parts.count == 2 else { continue }
            numbers[String(parts[0])] = parts[1].split { $0 == " " || $0 == "\t" }.first.flatMap { Int($0) }
        }
        return numbers
    }
}

/// The system calls of a process, as strace sees them.
enum SystemCalls {
    /// Counts those that begin within `time`. What a thread was already in when strace attached is none of them: strace
    /// interrupts it, and its return is the first line of each thread.
    static func count(of processID: CInt, within time: Duration, on machine: Namespace) async throws -> Int {
        try await count(of: processID, on: machine) { try await Task.sleep(for: time) }
    }

    /// Counts those that begin while `body` runs, likewise.
    static func count(
        of processID: CInt, on machine: Namespace, during body: () async throws -> Void
    ) async throws -> Int {
        let tracer = try await machine.spawn(["strace", "-f", "-o", "/dev/stdout", "-p", String(processID)])
        _ = try await tracer.line(containing: "attached")
        try await body()
        tracer.signal(SIGINT)
        _ = try await tracer.exit()
        var seen: Set<Substring> = []
        var count = 0
        for line in tracer.text(of: .output).split(separator: "\n") {
            guard let thread = line.split(separator: " ").first else { continue }
            if seen.insert(thread).inserted || line.contains("<detached ...>") { continue }
            if line.contains(" resumed>") || line.contains(" +++ ") || line.contains(" --- ") { continue }
            count += 1
        }
        if seen.isEmpty {
            throw LabError.unexpectedOutput(command: tracer.command, output: tracer.text(of: .error))
        }
        return count
    }
}
