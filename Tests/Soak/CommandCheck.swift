// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import Foundation
import Glibc

/// What `dialtone check` says of a packet: a program of its own that knows nothing from before, run by root or by a
/// user who may do nothing to the network.
struct CommandCheck: Decodable, Sendable {
    private struct Link: Decodable {
        let name: String
    }

    private let status: String
    private let reason: String?
    private let interface: Link?
    private let gateway: String?
    private let source: String?

    /// What the other user is started by. The signal that ends the Lab's processes is asked for anew.
    private static let setpriv = [
        "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--pdeathsig", "KILL",
    ]

    /// Asks on `host`.
    ///
    /// - Parameter isPrivileged: whether root asks. Only root can be somebody else.
    static func ask(_ subject: Subject, on host: Namespace, isPrivileged: Bool) async throws -> CommandCheck {
        let launcher = isPrivileged || geteuid() != 0 ? [] : setpriv
        let process = try await host.spawn(launcher + [LabAgent.program("dialtone")] + subject.check)
        process.closeInput()
        let exit = try await process.exit()
        guard [.status(0), .status(1)].contains(exit) else {
            throw LabError.commandFailed(
                command: process.command, exit: exit, standardError: process.text(of: .error))
        }
        return try JSONDecoder().decode(CommandCheck.self, from: Data(process.text(of: .output).utf8))
    }

    /// What it says otherwise than the kernel; of several things that the kernel may mean, than the first.
    func differences(from expectations: [Expectation]) -> [String] {
        let all = expectations.map(differences)
        return all.contains([]) ? [] : all.first ?? []
    }

    private func differences(from expected: Expectation) -> [String] {
        var found: [String] = []
        func note(_ what: String, _ said: String?, _ kernel: String?) {
            if said != kernel { found.append("\(what): \(said ?? "none"), kernel: \(kernel ?? "none")") }
        }
        note("status", status, expected.isSatisfied ? "satisfied" : "unsatisfied")
        if let reason, !expected.obstacles.contains(reason) {
            found.append("reason: \(reason), kernel: \(expected.obstacles.sorted().joined(separator: " or "))")
        }
        note("interface", interface?.name, expected.interface)
        note("gateway", gateway, expected.gateway)
        if case .this(let source) = expected.source { note("source", self.source, source) }
        return found
    }
}

extension Subject {
    /// Those that `check` is asked about. Each says whose packet it is, for a user is asked for who is not root.
    static let checked = all.map { subject in
        var subject = subject
        subject.user = subject.user ?? 0
        return subject
    }

    /// The arguments of `dialtone`.
    fileprivate var check: [String] {
        let host = port.map { isV6 ? "[\(address)]:\($0)" : "\(address):\($0)" } ?? address
        let options: [(String, String?)] = [
            ("--uid", user.map { "\($0)" }), ("--mark", mark.map { "\($0)" }), ("--protocol", transport?.rawValue),
            ("--interface", interface), ("--source", source),
        ]
        return ["check", host, "--json"] + options.flatMap { name, value in value.map { [name, $0] } ?? [] }
    }
}

extension Episode {
    /// What `check` says of `subject` otherwise than the kernel, which says the same before and after. Empty where they
    /// agree, and where the kernel never holds still.
    func check(_ subject: Subject, isPrivileged: Bool) async throws -> [Disagreement] {
        let start = BootClock.now()
        while BootClock.now() - start < Self.unrest {
            let before = try await ask(after: [])
            // A link that there is not is bad usage.
            if let interface = subject.interface, before?.links[interface] == nil { return [] }
            let said = try await CommandCheck.ask(subject, on: topology.host, isPrivileged: isPrivileged)
            let after = try await ask(after: [])
            guard let before, var after, before == after, after.isSettled else { continue }
            guard let asked = subject.asAsked else { return [] }
            if said.differences(from: try after.expectations(for: asked)).isEmpty { return [] }
            after.alternatives = try await Alternatives(of: [asked], on: topology.host).ways
            let found = said.differences(from: try after.expectations(for: asked))
            if found.isEmpty { return [] }
            if BootClock.now() - start > Self.patience {
                return [Disagreement(question: .command(subject, isPrivileged: isPrivileged), differences: found)]
            }
        }
        return []
    }
}

extension Subject {
    /// The packet of root's, as it is watched without a word of its user.
    fileprivate var asAsked: Subject? {
        if Subject.all.contains(self) { return self }
        var subject = self
        subject.user = nil
        return Subject.all.contains(subject) ? subject : nil
    }
}
