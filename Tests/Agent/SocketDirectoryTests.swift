// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Foundation
import Testing

@testable import DialtoneAgent

/// The directory of the socket.
@Suite struct SocketDirectoryTests {
    private func mode(of path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func `it is made with the mode that the socket needs, and left as it is if it is there`() throws {
        let fixture = try ConfigurationFixture()
        let directory = "\(fixture.directory)/run"
        try SocketDirectory.make(for: "\(directory)/dialtone.sock")
        #expect(try mode(of: directory) == (geteuid() == 0 ? 0o755 : 0o700))
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: directory)
        try SocketDirectory.make(for: "\(directory)/dialtone.sock")
        #expect(try mode(of: directory) == 0o711)
    }

    @Test func `its parent is not made`() throws {
        let fixture = try ConfigurationFixture()
        #expect { try SocketDirectory.make(for: "\(fixture.directory)/a/b/dialtone.sock") } throws: { error in
            (error as? SystemError)?.code == ENOENT
        }
    }
}
