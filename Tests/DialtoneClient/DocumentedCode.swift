// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtonePlatform
import Glibc

// The samples of the client's documentation, for the compiler: nothing runs them. `DocumentedCodeTests` holds each
// sample against this file.

private func open() async throws {
    let agent = DialtoneClient()
    let name = try await agent.open(.init(remote: "tcp://192.0.2.7:7000", name: "chat"))
    for try await event in agent.connectionEvents(names: [name]) {
        print(event)
    }
}

private func openOnce(_ agent: DialtoneClient) async throws {
    do throws(DialtoneError) {
        _ = try await agent.open(.init(remote: "tcp://192.0.2.7:7000", name: "chat"))
    } catch {
        guard error.code == .nameTaken else { throw error }
    }
}

private func serve(_ agent: DialtoneClient) async throws {
    try await agent.withSocket("chat", until: .data) { flow in
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(flow.descriptor.number, &buffer, buffer.count)
        print(String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self))
    }
}
