// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import Testing

@testable import DialtonePresentation

/// Fields for scripts.
@Suite struct FieldTemplateTests {
    private let connection = Sample.connection("office") {
        ($0.owner, $0.wakeFailed) = (1000, true)
        $0.security = .init(version: "1.3", cipher: "x", assurance: .verified, isResumed: false)
    }

    @Test(arguments: [
        ("name", "office"), ("name,state,owner", "office\tready\t1000"), ("security.version,wakeFailed", "1.3\ttrue"),
        ("{name} is {state}", "office is ready"), (#"{name}\t{epoch}\n"#, "office\t8\n"),
        ("{name}{nextAttemptAt}!", "office!"),
        (#"\x{name}\"#, #"\xoffice\"#),
    ])
    func `a list is separated by tabs, and a template filled in`(text: String, expected: String) {
        #expect(FieldTemplate(text)?.text(of: connection) == expected)
    }

    @Test(arguments: ["", ",", "name,", "na me", "{name", "name}", "{}", "{a{b}}", "{name} }", "ä"])
    func `what makes no sense is refused`(text: String) {
        #expect(FieldTemplate(text) == nil)
    }

    @Test func `the names of all fields are known, those inside of others too`() {
        let names = ConnectionsAPI.Connection.fieldNames
        #expect(Set(names).isSuperset(of: ["name", "state", "downSince", "security.certificateEndsAt", "wake"]))
        var written = connection
        written.upSince = Sample.noon
        #expect(names.count == Set(names).count, "\(names)")
        #expect(FieldTemplate(names.joined(separator: ","))?.fields == names)
    }
}
