// SPDX-License-Identifier: Apache-2.0

internal import Glibc

@testable internal import DialtoneAgent
@testable internal import DialtonePersistence
@testable internal import DialtonePlatform
@testable internal import DialtoneProcesses

extension FuzzTarget {
    /// What /proc, /sys and /etc/subuid say: of processes, control groups and mounts, whose names others choose, and of
    /// users.
    static let processes = FuzzTarget(name: "processes") { bytes in
        let text = Array(bytes.dropFirst()).text
        switch bytes.first.map({ $0 % 5 }) {
        case 0: _ = ProcessHandle.number(in: text)
        case 1: _ = (ProcessStat(text), ProcessHandle.users(status: text), SocketEntry.entries(in: text))
        case 2:
            let parts = text.split(separator: "\0", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { return }
            _ = ControlGroup.directories(of: parts[0], mounts: parts[1])
            for name in parts[0].split(separator: "\n") { _ = MemoryGroup.directories(name: name, mounts: parts[1]) }
        case 3: _ = MemoryGroup.taken(of: .max, text, mapped: UInt64(bytes.count))
        default:
            let users = SubordinateUsers(text)
            _ = (users.owner(of: 100_000), users.account(of: .max))
        }
    }

    /// The note of what the process before was at work on, which one wrote that was out of its mind.
    static let crashes = FuzzTarget(name: "crashes") { bytes in
        guard let (file, box) = blackBox else { preconditionFailure("no file in memory") }
        // Behind the number that tells its version.
        ftruncate(file, 8)
        ftruncate(file, 4096)
        pwrite(file, bytes, min(bytes.count, 4088), 8)
        var ledger = CrashLedger(box.entries)
        let now = Duration.seconds(1000)
        if let crash = box.crash, let subject = ledger.note(crash, now: now) {
            _ = ledger.refusal(of: subject, now: now)
        }
        box.entries = ledger.entries
        box.unsettledStarts += 1
    }

    /// One file and its box, since a box is never unmapped; of libFuzzer's thread alone.
    private static let blackBox: (CInt, BlackBox)? = {
        guard let file = try? BlackBox.file(), let box = try? BlackBox(file) else { return nil }
        return (dup(file.number), box)
    }()
}
