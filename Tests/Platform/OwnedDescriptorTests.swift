// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Glibc
import Testing

/// Whether a descriptor is closed is asked of its other end: numbers are reused by whatever runs beside a test.
struct OwnedDescriptorTests {
    @Test func `the end of its scope closes it`() throws {
        let descriptor = try WatchedDescriptor()
        do {
            let owner = OwnedDescriptor(descriptor.number)
            #expect(owner.number == descriptor.number)
            #expect(descriptor.isOpen)
        }
        #expect(descriptor.isClosed)
    }

    @Test func `close closes it at once`() throws {
        let descriptor = try WatchedDescriptor()
        let owner = OwnedDescriptor(descriptor.number)
        #expect(descriptor.isOpen)
        owner.close()
        #expect(descriptor.isClosed)
    }

    @Test func `a released descriptor stays open`() throws {
        let descriptor = try WatchedDescriptor()
        do {
            let number = OwnedDescriptor(descriptor.number).release()
            #expect(number == descriptor.number)
        }
        #expect(descriptor.isOpen)
        close(descriptor.number)
        #expect(descriptor.isClosed)
    }

    @Test func `a duplicate outlives its original`() throws {
        let descriptor = try WatchedDescriptor()
        let owner = OwnedDescriptor(descriptor.number)
        let duplicate = try owner.duplicate()
        #expect(duplicate.number != owner.number)
        #expect(fcntl(duplicate.number, F_GETFD) & FD_CLOEXEC != 0)
        owner.close()
        #expect(descriptor.isOpen)
        duplicate.close()
        #expect(descriptor.isClosed)
    }

    @Test func `what cannot be duplicated throws`() {
        #expect(throws: SystemError("duplicating a descriptor", code: EBADF)) {
            let owner = OwnedDescriptor(-1)
            _ = try owner.duplicate().number
        }
    }
}
