// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneProcesses

/// Sockets of processes.
@Suite struct ProcessSocketsTests {
    @Test func `the kernel's list of sockets is read, and what makes no sense in it is left out`() throws {
        // As a little-endian machine has it.
        try #require(1.littleEndian == 1, "written for little-endian machines")
        let list = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:075B 00000000:0000 0A 00000000:00000000 0:0 0 0 0 4711 1 0 100 0 0 10 0
               1: 020200C0:C350 0A7100CB:075B 01 00000000:00000000 2:0C5A 0 0 0 4712 2 0 20 4 30 10 -1
               2: 020200C0:C351 0A7100CB:075B
               3: 020200C0:C352 0A7100CBB:075B 01 00000000:00000000 0:0 0 0 0 4713 1 0
               4: 020200C0:C353 0A7100CB:99999 01 00000000:00000000 0:0 0 0 0 4714 1 0
               5: 020200C0:C354 0A7100CB:075B 01 00000000:00000000 0:0 0 0 0 -4715 1 0
            """
        #expect(
            SocketEntry.entries(in: list) == [
                SocketEntry(
                    local: IPAddress("192.0.2.2")!, remote: IPAddress("203.0.113.10")!, remotePort: 1883, inode: 4712)
            ])
    }

    @Test func `IPv6 is read, and IPv4 within it is IPv4`() {
        let list = """
              sl  local_address                         remote_address                        st queues tr when
               0: B80D0120000000000000000002000000:C350 B80D01200C0000000000000010000000:075B 02 0:0 00:0 0 0 0 81 1
               1: 0000000000000000FFFF0000020200C0:C351 0000000000000000FFFF00000A7100CB:01BB 01 0:0 00:0 0 0 0 82 1
            """
        let entries = SocketEntry.entries(in: list)
        #expect(entries.map(\.local) == [IPAddress("2001:db8::2")!, IPAddress("192.0.2.2")!])
        #expect(entries.map(\.remote) == [IPAddress("2001:db8:0:c::10")!, IPAddress("203.0.113.10")!])
        #expect(entries.map(\.remotePort) == [1883, 443])
        #expect(entries.map(\.inode) == [81, 82])
    }

    @Test func `who descends from a process is found at any depth, and a circle ends`() {
        let tree = ProcessTree(parents: [2: 1, 3: 2, 4: 3, 5: 1, 6: 7, 7: 6])
        #expect(Set(tree.descendants(of: 2)) == [2, 3, 4])
        #expect(tree.descendants(of: 5) == [5])
        #expect(Set(tree.descendants(of: 6)) == [6, 7])
    }

    @Test func `a process's parent stands behind its name, whatever that is`() {
        #expect(ProcessStat("7 (sh) S 1 7 7 0")?.parent == 1)
        #expect(ProcessStat("7 (a) S 99) S 12 7 7 0")?.parent == 12)
        #expect(ProcessStat("7 (sh) S") == nil)
        #expect(ProcessStat("7 (sh) S x 7") == nil)
        #expect(ProcessStat("") == nil)
    }
}
