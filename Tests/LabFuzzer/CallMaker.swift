// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneTestSupport
import DialtoneVarlinkDefinition

/// Makes calls of every method of both interfaces from their definitions: most of them such that the daemon takes them,
/// many with values at the edges, some of the wrong type, and a few that are no calls at all.
struct CallMaker {
    private let methods: [(name: String, method: InterfaceDefinition.Method, of: InterfaceDefinition)]
    var random: SplitMix64

    init(seed: UInt64) throws {
        random = SplitMix64(seed: seed)
        methods = try [NetworkAPI.description, ConnectionsAPI.description].flatMap { text in
            let definition = try InterfaceDefinition(text)
            return definition.methods.map { ("\(definition.name).\($0.name)", $0, definition) }
        }
    }

    /// The bytes of a call, with its NUL.
    mutating func call() -> [UInt8] {
        if random.chance(4) { return noise() }
        let method = pick(methods)
        var text = #"{"method":""# + method.name + #"","parameters":"#
        text += random.chance(2) ? wrong() : value(of: .object(method.method.parameters), in: method.of, depth: 0)
        if random.chance(method.method.isStream ? 80 : 5) { text += #","more":true"# }
        if random.chance(5) { text += #","oneway":true"# }
        if random.chance(2) { text += #","upgrade":true"# }
        if random.chance(2) { text += #","unheardOf":[[[{}]]]"# }
        return Array((text + "}").utf8) + [0]
    }

    private mutating func noise() -> [UInt8] {
        switch random.below(5) {
        case 0: [0]
        case 1: (0..<random.below(2000)).map { _ in UInt8(truncatingIfNeeded: random.next()) } + [0]
        case 2: Array((String(repeating: "[", count: random.below(20_000)) + "\0").utf8)
        case 3: Array(#"{"method":"org.varlink.service.GetInfo","method":1,"parameters":null}"#.utf8) + [0]
        default:
            Array(("{" + (0..<random.below(4000)).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}\0").utf8)
        }
    }

    private mutating func pick<T>(_ choices: [T]) -> T { choices[random.below(choices.count)] }

    private mutating func value(
        of kind: InterfaceDefinition.Kind, in definition: InterfaceDefinition, depth: Int
    ) -> String {
        if random.chance(2) { return wrong() }
        switch definition.resolve(kind) {
        case .bool: return pick(["true", "false"])
        case .int: return pick(Self.integers)
        case .float: return pick(["1.5", "2", "0", "-1", "1e308", "1e-308", "1e400", "10", "11"])
        case .string: return "\"\(text())\""
        case .optional(let kind): return value(of: kind, in: definition, depth: depth)
        case .array(let element):
            let count = random.chance(3) ? 300 : random.below(4)
            return "["
                + (0..<count).map { _ in value(of: element, in: definition, depth: depth + 1) }
                .joined(separator: ",") + "]"
        case .enumeration(let cases): return "\"\(random.chance(95) ? pick(cases) : "unheardOf")\""
        case .named: return wrong()
        case .object(let fields):
            var members = fields.compactMap { field -> String? in
                if field.isOptional ? random.chance(60) : random.chance(1) { return nil }
                return "\"\(field.name)\":\(member(field, in: definition, depth: depth))"
            }
            if random.chance(2) { members.append("\"unheardOf\":1") }
            return "{" + members.joined(separator: ",") + "}"
        }
    }

    /// A field, by its name where a value of its type alone would never get past the first check.
    private mutating func member(
        _ field: InterfaceDefinition.Field, in definition: InterfaceDefinition, depth: Int
    ) -> String {
        guard random.chance(85) else { return value(of: field.kind, in: definition, depth: depth + 1) }
        switch field.name {
        case "remote": return "\"\(pick(Self.remotes))\""
        case "name": return "\"n\(random.below(12))\""
        case "host": return "\"\(pick(["127.0.0.1", "192.0.2.1", "::1", "a.example", "localhost", "fe80::1"]))\""
        case "protocol":
            return pick([
                "\"tcp\"", "\"crlf\"", "\"mqtt\"", "\"xmpp-ping\"", "\"whitespace\"", "\"websocket\"", "\"custom\"",
                "\"client\"", "\"none\"",
            ])
        case "fileDescriptor": return pick(["0", "0", "0", "1", "3", "-1"])
        case "epoch", "wake": return "\(random.below(4))"
        case "message": return pick(["\"mqtt\"", "\"websocket\""])
        case "since":
            return pick(["\"2026-03-01T14:02:11.042Z\"", "\"0001-01-01T00:00:00Z\"", "\"9999-12-31T23:59:60Z\""])
        default: return value(of: field.kind, in: definition, depth: depth + 1)
        }
    }

    private mutating func text() -> String {
        switch random.below(6) {
        case 0: "n\(random.below(12))"
        case 1:
            pick([
                "sip", "mqtt", "signaling", "46", "1.3", "sha256/", "sha256/" + String(repeating: "A", count: 43) + "=",
            ])
        case 2: pick(["", " ", "..", "-", "é", "\\u0000", "\\ud83d\\ude00", "\\n", "%s%n"])
        case 3: pick(["\\\\x20\\\\x02", "\\\\", "\\\\x", "\\\\?", "\\\\x2?", "\\\\r\\\\n"])
        case 4: String(repeating: "a", count: random.below(3000))
        default: pick(Self.remotes)
        }
    }

    private mutating func wrong() -> String {
        pick(["null", "[]", "{}", "\"\"", "0", "true", "-0", "1e999", "[[[[1]]]]", "{\"a\":{\"a\":{}}}", "1.5"])
    }

    private static let integers = [
        "0", "1", "-1", "1000", "60000", "999", "65535", "65536", "2147483647", "-2147483648", "4294967295",
        "4294967296", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "9223372036854775",
        "86400000", "8640000000000", "1.5", "1e3", "1e30",
    ]

    private static let remotes = [
        "tcp://127.0.0.1:1", "tcp://127.0.0.1:7", "mqtt://127.0.0.1", "sip://127.0.0.1", "sips://127.0.0.1:7",
        "wss://127.0.0.1:7/x", "xmpp://127.0.0.1:7", "tls://127.0.0.1:7", "tcp://a.example:1", "sip://a.example",
        "tcp://[::1]:1", "tcp://[fe80::1]:1", "tcp://0.0.0.0:1", "tcp://255.255.255.255:1", "unix:/x", "tcp://", "://",
    ]
}
