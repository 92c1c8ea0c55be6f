// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Glibc
import Testing

/// The page that one process leaves to the next. What a crash writes into it is told by the stories under systemd.
@Suite struct BlackBoxTests {
    @Test func `what is remembered outlives the mapping`() throws {
        let file = try BlackBox.file()
        let entries: [BlackBox.Entry] = [
            .init(
                .call(method: "org.dialtone.Network.GetPath", user: 7), digest: .max, count: 3, latest: .seconds(9)),
            .init(.bytes(connection: "office", user: 7), digest: 0, count: 1, latest: .milliseconds(1)),
        ]
        let box = try BlackBox(file)
        #expect(box.entries.isEmpty && box.crash == nil && box.unsettledStarts == 0, "nothing was written yet")
        box.entries = entries
        box.unsettledStarts = 4
        let other = try BlackBox(file)
        #expect(other.entries == entries)
        #expect(other.unsettledStarts == 4)
        other.entries = []
        #expect(box.entries.isEmpty)
    }

    @Test func `a long text is cut and too many entries are left out`() throws {
        let box = try BlackBox()
        let name = String(repeating: "n", count: 200)
        box.entries = Array(
            repeating: .init(.bytes(connection: name, user: 7), digest: 1, count: 1, latest: .zero), count: 100)
        #expect(box.entries.count == BlackBox.mostEntries)
        #expect(box.entries.first?.work == .bytes(connection: String(name.prefix(79)), user: 7))
    }

    @Test func `a file of another size is none`() throws {
        let file = try OwnedDescriptor.fileInMemory("test")
        #expect(throws: SystemError.self) { try BlackBox(file) }
        // One that is full of nonsense is read as far as it makes sense.
        let noise = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
        #expect(write(file.number, noise, noise.count) == noise.count)
        let box = try BlackBox(file)
        #expect(box.entries.isEmpty && box.crash == nil)
    }

    @Test @AgentQueue func `notes cost nothing where nobody watches`() {
        var count = 0
        BlackBox.noteCall(of: 1000, [1, 2, 3]) {
            BlackBox.noteMethod("org.dialtone.Network.GetPath")
            BlackBox.noteBytes(of: "office", 1000) { count += 1 }
        }
        #expect(count == 1)
    }
}
