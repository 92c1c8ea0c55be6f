// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation
import Testing

/// The client library for C, built once for all tests.
enum CLibrary {
    private static let repository = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL.path
    private static let folder = "\(repository)/.build/clients-c"

    /// The driver of the scenarios, linked with the static library.
    static let driver = Task {
        try await make("\(folder)/driver")
        return "\(folder)/driver"
    }

    /// Has `make` do something in the library's folder.
    static func make(_ target: String) async throws {
        let machine = try await Namespace.create("a compiler's")
        _ = try await machine.command(["make", "-C", "\(repository)/Clients/C", "BUILD=\(folder)", target])
    }
}

/// What the library is by itself; `ClientScenarios` has what it does.
@Suite("The library for C", .lab, .serialized)
struct CLibraryTests {
    @Test func `it shows the names of its list, no others, and is used from C++`() async throws {
        _ = try await CLibrary.driver.value
        try await CLibrary.make("check")
    }
}
