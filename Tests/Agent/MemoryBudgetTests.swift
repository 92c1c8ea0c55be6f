// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneAgent

private let mebibyte: UInt64 = 1 << 20

/// What memory is kept for what there is.
@Suite struct MemoryBudgetTests {
    private func use(_ used: UInt64, of limit: UInt64) -> MemoryUse {
        MemoryUse(name: "memory.max", limit: limit * mebibyte, used: used * mebibyte)
    }

    @Test(arguments: [(8, 4), (16, 4), (32, 8), (128, 32), (512, 64), (65_536, 64)] as [(UInt64, UInt64)])
    func `a quarter of the limit is kept, within bounds`(limit: UInt64, reserve: UInt64) {
        #expect(use(0, of: limit).reserve == reserve * mebibyte)
    }

    /// Whether a budget that has admitted nothing yet does.
    private func admits(_ work: MemoryBudget.Work, forRoot: Bool, _ use: MemoryUse) -> Bool {
        var budget = MemoryBudget()
        return budget.admits(work, forRoot: forRoot, use)
    }

    @Test func `what a client says of a connection counts`() {
        let budget = MemoryBudget()
        let bytes = [0, 8192].map { budget.bytes(of: .connection(given: $0)) }
        #expect(bytes == [16 << 10, 56 << 10])
        #expect(budget.bytes(of: .text(bytes: .max)) < .max / 8, "no length overflows the sum")
        #expect(budget.bytes(of: .answer(bytes: .max)) < .max / 8)
    }

    @Test func `connections count for what they come to, until the process has grown by that`() {
        var budget = MemoryBudget()
        // Twelve megabytes; beside ten in use there are fourteen for others than root.
        for _ in 0..<768 { budget.connectionCame(given: 0) }
        func admits(_ work: MemoryBudget.Work, _ used: UInt64, grown: UInt64) -> Bool {
            var (copy, use) = (budget, use(used, of: 32))
            use.growth = grown * mebibyte
            return copy.admits(work, forRoot: false, use)
        }
        let connection = MemoryBudget.Work.connection(given: 0)
        #expect(admits(connection, 10, grown: 0))
        for _ in 0..<150 { budget.connectionCame(given: 0) }
        #expect(!admits(connection, 10, grown: 0), "nothing of them is in use yet")
        #expect(!admits(connection, 20, grown: 10))
        #expect(admits(connection, 20, grown: 11))
        #expect(admits(.client, 20, grown: 10), "which may take some of the reserve")
        for _ in 0..<150 { budget.connectionWent(given: 0) }
        #expect(admits(connection, 10, grown: 0))
        budget.textChanged(from: 0, to: 500 << 10)
        #expect(!admits(connection, 10, grown: 0), "two megabytes with what clients left")
        budget.textChanged(from: 500 << 10, to: 0)
        (budget.clients, budget.client) = (100, 24 << 10)
        #expect(!admits(connection, 10, grown: 0), "clients may leave answers unread")
        (budget.client, budget.held) = (0, (64 << 10, 3 << 20))
        #expect(!admits(connection, 10, grown: 0), "and calls that are not over")
        budget.held.byAll = 1 << 20
        #expect(admits(connection, 10, grown: 0), "as much of them as is held for all")
        budget.clients = 0
        for _ in 0..<2000 { budget.connectionWent(given: 0) }
        #expect(admits(connection, 23, grown: 0))
    }

    @Test func `others are refused before root is, and connections before clients`() {
        let connection = MemoryBudget.Work.connection(given: 0)
        #expect(!admits(connection, forRoot: false, use(25, of: 32)))
        #expect(admits(connection, forRoot: true, use(25, of: 32)))
        #expect(!admits(connection, forRoot: true, use(29, of: 32)))
        #expect(admits(.client, forRoot: true, use(29, of: 32)), "to see what there is, and close some")
        #expect(!admits(.client, forRoot: false, use(29, of: 32)))
    }

    @Test func `more in use than the limit leaves no room, and traps nobody`() {
        #expect(!admits(.client, forRoot: true, use(64, of: 32)))
        #expect(!admits(.client, forRoot: true, MemoryUse(name: "", limit: .max, used: .max)))
    }
}

private let unified = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
private let hybrid = """
    31 30 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
    32 30 0:28 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
    33 30 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
    """

/// Where memory is counted.
@Suite struct MemoryGroupTests {
    @Test(
        arguments: [
            (
                "0::/system.slice/dialtoned.service", unified,
                [["/sys/fs/cgroup/system.slice/dialtoned.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"]]
            ),
            ("0::/", unified, [["/sys/fs/cgroup"]]),
            ("0::/../elsewhere", unified, []),
            ("9:name=systemd:/x", hybrid, []),
            ("1:cpu:/c", hybrid, []),
            (
                "4:memory:/a/b", hybrid,
                [["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"]]
            ),
            ("0::/", hybrid, [["/sys/fs/cgroup/unified"]]),
            ("0::/docker/1", "30 24 0:26 /docker /cg rw - cgroup2 cgroup2 rw", [["/cg/1", "/cg"]]),
            ("0::/docker", "30 24 0:26 /docker /cg rw - cgroup2 cgroup2 rw", [["/cg"]]),
            // Two mounts, of which one may lie under something else.
            (
                "0::/a", "30 24 0:26 / /hidden rw - cgroup2 cgroup2 rw\n31 24 0:26 / /cg rw - cgroup2 cgroup2 rw",
                [["/hidden/a", "/hidden"], ["/cg/a", "/cg"]]
            ),
            ("nonsense", hybrid, []), ("4:memory", hybrid, []), (":::", hybrid, []),
            ("0::/a", "30 24\n- cgroup2\n30 24 0:26 / /cg rw - cgroup2", []),
        ] as [(Substring, String, [[String]])])
    func `its group and those above it are found, the innermost first, by each mount`(
        name: Substring, mounts: String, directories: [[String]]
    ) {
        #expect(MemoryGroup.directories(name: name, mounts: mounts) == directories)
    }

    @Test func `what the kernel could take back does not count as used, but for the program itself`() {
        let unified =
            "anon 100\nfile 70\nshmem 10\nfile_mapped 25\ninactive_file 40\nactive_file 20\n"
            + "slab_reclaimable 5\nslab 9\n"
        #expect(MemoryGroup.taken(of: 200, unified, mapped: 0) == 160)
        #expect(MemoryGroup.taken(of: 200, unified, mapped: 25) == 160)
        #expect(MemoryGroup.taken(of: 200, unified, mapped: 28) == 163, "three of it another group has")
        #expect(MemoryGroup.taken(of: 30, unified, mapped: 0) == 0)
        let first =
            "mapped_file 1\ninactive_file 1\nactive_file 2\ntotal_mapped_file 11\ntotal_inactive_file 40\n"
            + "total_active_file 20\n"
        #expect(MemoryGroup.taken(of: 200, first, mapped: 0) == 151)
        #expect(MemoryGroup.taken(of: 200, "file_mapped 9\nactive_file 8\n", mapped: 0) == 200)
        #expect(MemoryGroup.taken(of: 200, "inactive_file x\nactive_file -1\n\n a b c", mapped: 0) == 200)
    }
}
