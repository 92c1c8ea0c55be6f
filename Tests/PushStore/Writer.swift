// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Glibc

/// The program that saves until it is killed.
enum Writer {
    static var path: String { "\(OwnProgram.directory)/push-store-writer" }

    static func run(_ mode: String, _ directory: String) -> Program.Result { Program.run(path, [mode, directory]) }

    /// Runs it until it has saved that many transactions more, and a moment longer, and kills it.
    ///
    /// - Returns: the last number that it said.
    static func runAndKill(after transactions: Int, andTurns turns: Int, _ directory: String) throws -> Int64? {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for number in ends { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
        let output = OwnedDescriptor(ends[0])
        let input = OwnedDescriptor(ends[1])
        let process = try Spawn.start(
            "starting \(path)", path, [path, "write", directory], descriptors: [(1, .descriptor(input.number))])
        input.close()
        var text: [UInt8] = []
        while text.count(where: { $0 == 10 }) < transactions, read(output.number, &text) {}
        // Some work, so that the signal comes anywhere in a transaction.
        var sum = 0
        for turn in 0..<turns { sum &+= turn }
        kill(process, sum == -1 ? SIGTERM : SIGKILL)
        while read(output.number, &text) {}
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let lines = text.split(separator: 10, omittingEmptySubsequences: false).dropLast()
        return lines.last.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }

    private static func read(_ number: CInt, _ text: inout [UInt8]) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(number, &chunk, chunk.count)
        if count > 0 { text += chunk[..<count] }
        return count > 0
    }
}
