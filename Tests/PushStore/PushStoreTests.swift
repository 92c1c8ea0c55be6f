// SPDX-License-Identifier: Apache-2.0

import DialtoneDistributor
import DialtoneModels
import DialtonePushStore
import DialtoneTestSupport
import Glibc
import Testing

/// The push store.
@Suite struct PushStoreTests {
    let fixture = StoreFixture()

    /// What another process would find.
    func reload() throws -> StoredState {
        var store = try PushStore(directory: fixture.store)
        return try store.load()
    }

    @Test func `what is saved is there again`() throws {
        var model = StoredState()
        do {
            var store = try PushStore(directory: fixture.store)
            let first = try store.load()
            #expect(first == model)
            try store.save(Samples.all)
            model.apply(Samples.all)
            let second = try store.load()
            #expect(second == model)
        }
        let third = try reload()
        #expect(third == model)
    }

    @Test func `what is removed is gone, and what is put twice is there once`() throws {
        var changed = Samples.registration
        changed.isDemoted = false
        changed.endpoint = nil
        let steps: [[StoreChange]] = [
            Samples.all,
            [.registration(changed), .messageRemoved(1), .settledRemoved(upTo: 3), .memory(Samples.server, [])],
            [.endingRemoved(Samples.server, Samples.id), .registrationRemoved(7), .registrationRemoved(99)],
        ]
        var model = StoredState()
        for step in steps {
            do {
                var store = try PushStore(directory: fixture.store)
                try store.save(step)
            }
            model.apply(step)
            let found = try reload()
            #expect(found == model)
        }
    }

    @Test func `nobody else can read it`() throws {
        let old = umask(0)
        defer { umask(old) }
        var store = try PushStore(directory: fixture.store)
        try store.save(Samples.all)
        #expect(fixture.mode(fixture.store) == 0o700)
        for name in fixture.entries { #expect(fixture.mode("\(fixture.store)/\(name)") == 0o600, "\(name)") }
        #expect(fixture.entries == ["push.db", "push.db-wal"])
    }

    @Test func `its directory may be a link of the same user's to a directory, and to nothing else`() throws {
        let target = "\(fixture.directory)/state"
        mkdir(target, 0o755)
        let link = "\(fixture.directory)/link"
        symlink(target, link)
        defer { for path in [link, "\(target)/\(PushStore.fileName)"] { unlink(path) } }
        do {
            var store = try PushStore(directory: link)
            try store.save(Samples.all)
        }
        #expect(fixture.mode(target) == 0o700)
        #expect(fixture.mode("\(target)/\(PushStore.fileName)") == 0o600)
        unlink(link)
        symlink("\(target)/\(PushStore.fileName)", link)
        #expect(throws: StoreError.self) { _ = try PushStore(directory: link) }
    }

    @Test func `a second process is kept out, and told so`() throws {
        let store = try PushStore(directory: fixture.store)
        // Locks belong to a process: another one is needed to see them.
        let result = Writer.run("write", fixture.store)
        #expect(result.status == 1, "\(result)")
        #expect(result.output.contains("locked"), "\(result)")
        #expect(store.notices == [])
    }

    @Test func `compacting gives the room back and keeps all`() throws {
        var store = try PushStore(directory: fixture.store)
        try store.save((1...200).map { .message(Samples.message($0)) } + [.registration(Samples.registration)])
        try store.save((2...200).map { .messageRemoved($0) })
        try store.compact()
        var status = stat()
        #expect(stat(fixture.file, &status) == 0)
        #expect(status.st_size < 100_000, "\(status.st_size) bytes")
        let found = try store.load()
        #expect(found.messages == [Samples.message(1)])
    }
}
