// SPDX-License-Identifier: Apache-2.0

import Testing

/// The manual page of the configuration, held against the reader of the configuration.
@Suite struct ConfigurationKeyTests {
    /// What a connection's settings are called in the interface, and where they stand in a file.
    private static let types = [
        "Settings": "", "Keepalive": "keepalive.", "Backoff": "backoff.", "TLS": "tls.", "SocketSettings": "socket.",
        "OpeningStep": "opening.", "OpeningAnswer": "opening.expect.",
        "AnsweredMessage": "answers.",
    ]
    /// The functions that read the other tables; what is not listed reads a connection's own keys.
    private static let tables = ["readNetwork": "network.", "readClients": "clients.", "readLimits": "limits."]

    @Test func `dialtone.toml(5) has each key that is read, and no other`() throws {
        let read = try Self.settings().union(Self.otherKeys()).union(["opening.send_file"])
        let documented = try Self.documented()
        #expect(read.subtracting(documented).sorted() == [], "docs/dialtone.toml.5 lacks them")
        #expect(documented.subtracting(read).sorted() == [], "docs/dialtone.toml.5 has them, and nothing reads them")
        #expect(read.count > 60, "\(read.sorted())")
    }

    /// The keys of the list items of the page.
    private static func documented() throws -> Set<String> {
        let items = try Repository.read("docs/dialtone.toml.5").lines.filter { $0.hasPrefix(".It Va ") }
        return Set(items.flatMap { $0.dropFirst(7).split(separator: " ").map(String.init) }).subtracting([","])
    }

    /// The fields of the settings, as keys.
    private static func settings() throws -> Set<String> {
        var (keys, prefix) = (Set<String>(), String?.none)
        for line in try Repository.read("Sources/DialtoneAPI/org.dialtone.Connections.varlink").lines {
            if let type = line.firstMatch(of: /^type (\w+) \($/) {
                prefix = types[String(type.1)]
            } else if line.hasPrefix(")") {
                prefix = nil
            } else if let prefix, let field = line.firstMatch(of: #/^  (\w+): /#) {
                keys.insert(prefix + key(of: String(field.1)))
            }
        }
        return keys
    }

    /// As `SettingsTable.key(of:)`.
    private static func key(of field: String) -> String {
        let unit = "Milliseconds"
        return (field.hasSuffix(unit) ? field.dropLast(unit.count) : field[...]).reduce(into: "") {
            $0 += $1.isUppercase ? "_\($1.lowercased())" : "\($1)"
        }
    }

    /// The keys that the reader names itself.
    private static func otherKeys() throws -> Set<String> {
        var keys = Set<String>()
        let folder = "Sources/Configuration/ConfigurationReader"
        for (path, usual) in [("\(folder).swift", ""), ("\(folder)+Wake.swift", "wake.")] {
            var prefix = usual
            for line in try Repository.read(path).lines {
                if let function = line.firstMatch(of: /func (\w+)/) { prefix = tables[String(function.1)] ?? usual }
                for match in line.matches(of: /(?:\btable\.\w+|readInterfaces)\("(\w+)"/) {
                    keys.insert(prefix + match.1)
                }
            }
        }
        return keys
    }
}
