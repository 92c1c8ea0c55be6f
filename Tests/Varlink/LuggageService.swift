// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import DialtoneTestSupport
import Foundation

@testable import DialtoneVarlink

/// A service whose methods take and give descriptors, and what its handlers saw.
@AgentQueue
final class LuggageService {
    let service = VarlinkService(vendor: "Dialtone", product: "Test", version: "1", url: "https://example.org")
    let server: VarlinkServer
    private(set) var incidents: [VarlinkServer.Incident] = []
    var kept: [VarlinkExchange<LuggageAPI.Keep>] = []

    init(limits: VarlinkServer.Limits = .init()) {
        server = VarlinkServer(service, limits: limits)
        server.onIncident = { [weak self] incident, _ in self?.incidents.append(incident) }
        service.add(interface: LuggageAPI.name, description: LuggageAPI.description)
        service.handleLater(LuggageAPI.Weigh.self) { parameters, exchange throws(VarlinkFailure) in
            guard let place = parameters.fileDescriptor else { return exchange.reply(.init(text: "none")) }
            let descriptor = try exchange.takeDescriptor(place, parameter: "fileDescriptor")
            exchange.reply(.init(text: contents(of: descriptor)))
        }
        service.handleLater(LuggageAPI.Fetch.self) { parameters, exchange in
            let descriptors = VarlinkDescriptors()
            let place = descriptors.append(file(parameters.text))
            let padding = String(repeating: "x", count: parameters.weight ?? 0)
            exchange.reply(.init(fileDescriptor: place, padding: padding), descriptors)
        }
        service.handleLater(LuggageAPI.Keep.self) { [weak self] _, exchange in self?.kept.append(exchange) }
        service.handle(LuggageAPI.Walk.self) { _, _ in .init() }
    }

    /// A client of this service over a socket pair.
    func client() throws -> RawClient {
        let (ours, theirs) = socketPair()
        try server.serve(OwnedDescriptor(ours))
        return RawClient(OwnedDescriptor(theirs))
    }

    /// A client of the project's.
    func connection() throws -> VarlinkConnection {
        let (ours, theirs) = socketPair()
        try server.serve(OwnedDescriptor(ours))
        return try VarlinkConnection(OwnedDescriptor(theirs))
    }
}

/// A file in memory with a text in it.
func file(_ text: String) -> OwnedDescriptor {
    guard let file = try? OwnedDescriptor.fileInMemory("luggage") else { preconditionFailure("no memory") }
    let bytes = Array(text.utf8)
    precondition(pwrite(file.number, bytes, bytes.count, 0) == bytes.count)
    return file
}

/// What a file has in it.
func contents(of file: borrowing OwnedDescriptor) -> String {
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = pread(file.number, &bytes, bytes.count, 0)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}

/// A descriptor to pass, and the other end that tells when all copies of it are closed.
final class Tracer: Sendable {
    let passed: CInt
    private let kept: OwnedDescriptor

    init() {
        let (passed, kept) = socketPair()
        self.passed = passed
        self.kept = OwnedDescriptor(kept)
    }

    /// Whether somebody has it.
    var isOpen: Bool {
        var byte: UInt8 = 0
        return recv(kept.number, &byte, 1, CInt(MSG_DONTWAIT | MSG_PEEK)) != 0
    }

    /// Whether nobody has it any more. A process that another test forks in this moment has a copy until its exec, so
    /// the end is waited for; the limit only makes a failure end.
    var isClosed: Bool {
        var entry = pollfd(fd: kept.number, events: CShort(POLLIN), revents: 0)
        return poll(&entry, 1, 10_000) == 1 && !isOpen
    }
}
