// SPDX-License-Identifier: Apache-2.0

import Testing

/// What other programs may use: the libraries, and of the modules below them what their interfaces are made of.
/// Everything else has `package` access; see decision 0028.
@Suite struct PublicNamesTests {
    /// The public types by module. `DialtoneAPI` has those that are made of its definitions beside its own.
    private static let types: [String: Set<String>] = [
        "Reachability": [
            "HostReachability", "HostReachability.Callback", "PathMonitor", "PathMonitor.AsyncIterator",
            "PathMonitor.Handler", "PathUpdates", "PathUpdates.AsyncIterator", "PathUpdates.Element",
            "ReachabilityError", "ReachabilityFlags",
        ],
        "NetworkPath": [
            "CostSource", "Explanation", "Explanation.Step", "Explanation.Step.Subject", "IPAddress",
            "IPAddress.Family", "Interface", "InterfaceAddress", "InterfaceKind", "Path", "Path.Reason", "Path.Status",
            "PathChange", "Target", "Target.Host", "Target.TransportProtocol",
        ],
        "DialtoneClient": [
            "ConnectionEvents", "ConnectionEvents.Element", "ConnectionEvents.Failure", "ConnectionEvents.Iterator",
            "DialtoneClient", "DialtoneError", "DialtoneStream", "DialtoneStream.Element", "DialtoneStream.Failure",
            "DialtoneStream.Iterator", "DialtoneSubscription", "TakenFlow",
        ],
        "DialtonePush": [
            "PushCredentials", "PushError", "PushError.RegistrationFailure", "PushEvent", "PushPayload",
            "PushRegistry", "PushRegistryDelegate", "PushType", "ReceivedPush",
        ],
        "DialtoneAPI": ["SocketPath"],
        "Varlink": [
            "Timestamp", "VarlinkCallError", "VarlinkEmpty", "VarlinkErrorReply", "VarlinkFailure",
            "VarlinkFieldReader", "VarlinkFieldWriter", "VarlinkMethod", "VarlinkObject", "VarlinkViolation",
            "VarlinkWritable",
        ],
        "Platform": ["OwnedDescriptor", "SystemError"],
    ]

    @Test func `the types that the libraries export are those that they mean to`() throws {
        var found: [String: Set<String>] = [:]
        for file in try Repository.sources.get() { found[file.target, default: []].formUnion(file.publicTypes) }
        for (module, expected) in Self.types {
            let names = found[module] ?? []
            #expect(
                names == expected,
                """
                \(module): public beside what is listed here: \(names.subtracting(expected).sorted()), and no more: \
                \(expected.subtracting(names).sorted())
                """)
        }
    }

    @Test func `nothing is public where nobody else looks`() throws {
        let declaration = /^ *(?:@\w+(?:\(\w*\))? )*(?:\w+ )*public\b/
        for file in try Repository.sources.get() + Repository.tests.get() where Self.types[file.target] == nil {
            for (index, code) in file.code.enumerated() where code.mentions("public ") && code.contains(declaration) {
                Issue.record("\(file.place(index)): \(file.target) belongs to no library; write `package`")
            }
        }
    }

    @Test func `a product that is no library for others says so in its name`() throws {
        let package = try Repository.read("Package.swift").lines.joined(separator: "\n")
        let libraries = package.matches(of: /\.library\(\s*name: "(\w+)"/).map { String($0.1) }
        #expect(libraries.filter { !$0.hasPrefix("_") } == ["Reachability", "DialtoneClient", "DialtonePush"])
    }

    @Test func `public types are found with the names of those that they stand in`() {
        let file = SourceFile(
            path: "Sources/X/Y.swift",
            text: """
                // public struct Comment
                public struct A: Hashable {
                    public enum B: Hashable {
                        case struct
                    }
                    package struct C {}
                    public typealias D = Int
                    public func struct(_ e: Int) {}
                }
                extension A.B {
                    @Sendable public final class F {}
                }
                package protocol G {}
                """)
        #expect(file.publicTypes == ["A", "A.B", "A.D", "A.B.F"])
    }
}

extension SourceFile {
    /// The public types that the file declares, with those that they stand in; by indentation, as it is formatted.
    fileprivate var publicTypes: Set<String> {
        let pattern =
            /^( *)((?:@?\w+(?:\(\w*\))? )*)(struct|class|enum|protocol|actor|typealias|extension) ([A-Z][\w.]*)/
        guard code.contains(where: { $0.mentions("public ") }) else { return [] }
        var found: Set<String> = []
        var outer: [(indentation: Int, name: String)] = []
        for line in code {
            guard let match = line.firstMatch(of: pattern) else { continue }
            outer.removeAll { $0.indentation >= match.1.count }
            outer.append((match.1.count, String(match.4)))
            guard match.3 != "extension", match.2.split(separator: " ").contains("public") else { continue }
            found.insert(outer.map(\.name).joined(separator: "."))
        }
        return found
    }
}
