// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// What `ip route get` answers: the kernel's own word on one packet, by a tool that is not of this project.
package enum KernelRoute: Hashable, Sendable {
    /// The packet leaves by a route.
    case found(Found)
    /// It does not, in the words of `ip` ("Network is unreachable").
    case refused(String)

    /// The route of a packet.
    package struct Found: Hashable, Sendable, Decodable {
        /// The interface.
        package let device: String
        /// The source address.
        package let source: String?
        /// `local`, `broadcast` and others; `nil` for a packet to another host.
        package let type: String?
        /// `linkdown` and others.
        package let flags: [String]
        private let nextHop: String?
        private let via: Via?

        /// The next hop, of either family; `nil` where the destination is on the link.
        package var gateway: String? { nextHop ?? via?.host }

        /// A next hop of the other family.
        private struct Via: Hashable, Sendable, Decodable { let host: String }

        private enum CodingKeys: String, CodingKey {
            case device = "dev"
            case source = "prefsrc"
            case nextHop = "gateway"
            case type, flags, via
        }
    }
}

extension KernelRoute {
    /// The route, where there is one.
    package var found: Found? {
        switch self {
        case .found(let route): route
        case .refused: nil
        }
    }
}

extension Namespace {
    /// Asks the kernel which way a packet would take, with what `ip route get` takes: `"203.0.113.10 mark 7"`.
    package func kernelRoute(_ packet: String) async throws -> KernelRoute {
        let output: String
        do {
            output = try await ip("-json route get \(packet)")
        } catch LabError.commandFailed(_, .status(2), let complaint) {
            let prefix = "RTNETLINK answers: "
            return .refused(complaint.hasPrefix(prefix) ? String(complaint.dropFirst(prefix.count)) : complaint)
        }
        guard let route = try JSONDecoder().decode([KernelRoute.Found].self, from: Data(output.utf8)).first else {
            throw LabError.unexpectedOutput(command: "ip route get \(packet)", output: output)
        }
        return .found(route)
    }
}
