// SPDX-License-Identifier: Apache-2.0

import Glibc
import Platform
import Testing

/// Whether a descriptor is closed is asked of the pipe's other end: numbers are reused by whatever runs beside a test.
struct OwnedDescriptorTests {
    @Test func theEndOfItsScopeClosesIt() throws {
        let pipe = try Pipe()
        do {
            let owner = OwnedDescriptor(pipe.writer)
            #expect(owner.number == pipe.writer)
            #expect(pipe.isWriterOpen)
        }
        #expect(!pipe.isWriterOpen)
    }

    @Test func closeClosesItAtOnce() throws {
        let pipe = try Pipe()
        let owner = OwnedDescriptor(pipe.writer)
        #expect(pipe.isWriterOpen)
        owner.close()
        #expect(!pipe.isWriterOpen)
    }

    @Test func aReleasedDescriptorStaysOpen() throws {
        let pipe = try Pipe()
        do {
            let number = OwnedDescriptor(pipe.writer).release()
            #expect(number == pipe.writer)
        }
        #expect(pipe.isWriterOpen)
        close(pipe.writer)
        #expect(!pipe.isWriterOpen)
    }

    @Test func aDuplicateOutlivesItsOriginal() throws {
        let pipe = try Pipe()
        let owner = OwnedDescriptor(pipe.writer)
        let duplicate = try owner.duplicate()
        #expect(duplicate.number != owner.number)
        #expect(fcntl(duplicate.number, F_GETFD) & FD_CLOEXEC != 0)
        owner.close()
        #expect(pipe.isWriterOpen)
        duplicate.close()
        #expect(!pipe.isWriterOpen)
    }

    @Test func whatCannotBeDuplicatedThrows() {
        #expect(throws: SystemError("duplicating a descriptor", code: EBADF)) {
            let owner = OwnedDescriptor(-1)
            _ = try owner.duplicate().number
        }
    }
}
