// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A link as `ip -json address show` tells of it.
package struct LinkState: Hashable, Sendable, Decodable {
    /// An address on a link.
    package struct Address: Hashable, Sendable, Decodable {
        /// The address.
        package let local: String
        /// The length of its prefix.
        package let prefixlen: Int
        /// `global` or `link`, for the most part.
        package let scope: String
        /// Whether duplicate address detection has not passed it yet.
        package let tentative: Bool?
    }

    /// The interface's number.
    package let ifindex: Int
    /// `UP`, `LOWER_UP`, `NO-CARRIER` and others.
    package let flags: Set<String>
    /// RFC 2863's state: `UP`, `DOWN`, `LOWERLAYERDOWN` and others.
    package let operstate: String
    /// The addresses.
    package let addresses: [Address]

    private enum CodingKeys: String, CodingKey {
        case ifindex, flags, operstate
        case addresses = "addr_info"
    }

    /// Whether an administrator has it up.
    package var isUp: Bool { flags.contains("UP") }
    /// Whether there is something at the other end, and the kernel has drawn its conclusions from it.
    package var hasCarrier: Bool { flags.contains("LOWER_UP") && operstate == "UP" }
}

extension Namespace {
    /// The state of a link now.
    package func link(_ name: String) async throws -> LinkState {
        let arguments = ["ip", "-json", "address", "show", "dev", name]
        let output = try await command(arguments)
        guard let link = try JSONDecoder().decode([LinkState].self, from: Data(output.utf8)).first else {
            throw LabError.unexpectedOutput(command: arguments.joined(separator: " "), output: output)
        }
        return link
    }

    /// Waits until a link is in a state; the kernel's messages are the occasions to look.
    ///
    /// - Parameter predicate: the state in words, such as "has carrier".
    @discardableResult
    package func link(
        _ name: String, _ predicate: String, where holds: (LinkState) -> Bool
    ) async throws -> LinkState {
        var last: LinkState?
        let awaited = "\(name) of \(self.name): \(predicate)"
        return try await changes.wait(for: awaited, describe: { last.map { "\($0)" } ?? "unknown" }) {
            let state = try await link(name)
            last = state
            return holds(state) ? state : nil
        }
    }
}
