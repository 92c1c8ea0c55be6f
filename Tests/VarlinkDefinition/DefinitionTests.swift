// SPDX-License-Identifier: Apache-2.0

import DialtoneVarlinkDefinition
import DialtoneVarlinkGeneration
import Testing

/// Varlink definitions.
@Suite struct DefinitionTests {
    private static let text = """
        # SPDX-License-Identifier: Apache-2.0
        #
        # Doors of a house.
        interface org.example.Doors

        # Not of the door's.

        # How a door is. open: one can go through. shut: one
        # cannot.
        type State (open, shut)

        # Why it was opened. Others may be added.
        type Cause (bell, key)

        # A door.
        type Door (
          # Its name.
          name: string,
          state: State,
          # Since when (RFC 3339).
          since: ?string,
          causes: []Cause
        )

        # Doors, and each change.
        # [Requires 'more' flag]
        method Watch(door: ?Door, default: ?int) -> (doors: []Door, kind: (all, change))

        method Hand(fileDescriptor: int) -> ()

        method Close(
          # Before it is locked.
          deferMilliseconds: int,
          lockMilliseconds: ?int, countsMilliseconds: []int, sinceMilliseconds: string
        ) -> ()

        # There is none.
        error NoSuchDoor (name: string)
        """

    @Test func `what is declared is found in order, with what stands before it`() throws {
        let definition = try InterfaceDefinition(Self.text)
        #expect(definition.name == "org.example.Doors")
        #expect(definition.types.map(\.name) == ["State", "Cause", "Door"])
        #expect(definition.types[0].comment == ["How a door is. open: one can go through. shut: one", "cannot."])
        guard case .object(let fields) = definition.types[2].kind else { Issue.record("no object"); return }
        #expect(fields.map(\.name) == ["name", "state", "since", "causes"])
        #expect(fields[1].comment == ["Its name."], "the field before says what it is")
        #expect(fields[2].kind == .optional(.string) && fields[3].kind == .array(.named("Cause")))
        #expect(definition.methods.map(\.isStream) == [true, false, false])
        #expect(definition.methods.map(\.takesDescriptors) == [false, true, false])
        #expect(definition.methods[0].reply[1].kind == .enumeration(["all", "change"]))
        #expect(definition.errors.map(\.name) == ["NoSuchDoor"])
    }

    @Test(arguments: [
        ("", "line 0: the end where interface was expected"),
        ("interface a.B\ntype T (x: Y)", "Y is not declared"),
        ("interface a.B\ntype T (x: int)\nerror T ()", "T is declared twice"),
        ("interface a.B\ntype T (x: int, x: int)", "a field is there twice among [\"x\", \"x\"]"),
        ("interface a.B\ntype T (x: int, y)", "line 0: both where fields or names was expected"),
        ("interface a.B\ntype T (x: number)", "line 2: number where a type was expected"),
        ("interface a.B\nmethod M() (x: int)", "line 2: ( where -> was expected"),
        ("interface a.B\nclass T ()", "line 2: class where type, method or error was expected"),
        ("interface a.B\nerror E (a, b)", "line 0: an enumeration where fields was expected"),
    ])
    func `what is none is refused with its place`(text: String, problem: String) {
        let error = #expect(throws: DefinitionError.self) { try InterfaceDefinition(text) }
        #expect(error?.description == problem)
    }

    @Test func `it is written as Swift`() throws {
        let definition = try InterfaceDefinition(Self.text)
        let known = ["bell", "key"].map(\.self)
        let swift = SwiftWriter.write(
            definition, source: Self.text, known: [known: "OtherAPI.Reason"], module: "DialtoneAPI")
        for part in [
            "/// Doors of a house.\npublic enum DoorsAPI {",
            "    public static let name = \"org.example.Doors\"\n",
            "    public enum State: String, Hashable, Sendable, CaseIterable {\n"
                + "        /// one can go through.\n        case open\n        /// one\n        /// cannot.\n"
                + "        case shut\n",
            "    public typealias Cause = OtherAPI.Reason\n",
            "    public struct Door: VarlinkObject {\n",
            "        public var since: Timestamp?\n", "        public var causes: [Cause]\n",
            "        public static let isStream = true\n", "        public static let takesDescriptors = true\n",
            "            public var `default`: Int?\n",
            "            public init(door: Door? = nil, `default`: Int? = nil) {\n",
            "            public enum Kind: String, Hashable", "\npublic import DialtoneVarlink\n",
            "        public init?(from _fields: inout some VarlinkFieldReader) {\n",
            "            let name: String? = _fields.text(\"name\") ?? _fields.lacking(\"name\")\n",
            "            self.since = _fields.time(\"since\")\n",
            "            let causes: [Cause]? = _fields.choices(\"causes\") ?? "
                + "_fields.lackingElements(\"causes\")\n",
            "            guard let name, let state, let causes else { return nil }\n",
            "            self.`default` = _fields.integer(\"default\")\n",
            "            if let `default` { _fields.put(\"default\", `default`) }\n",
            "            _fields.put(\"causes\", causes.map(\\.rawValue))\n",
            "        public typealias Reply = VarlinkEmpty\n",
            "        public static let errorName = \"org.example.Doors.NoSuchDoor\"\n",
            "        case noSuchDoor = \"org.example.Doors.NoSuchDoor\"\n",
        ] {
            #expect(swift.contains(part), "\(part)\nis not in\n\(swift)")
        }
        let open = SwiftWriter.write(definition, source: Self.text, known: [:], module: "DialtoneVarlink")
        #expect(open.contains("package struct Cause: RawRepresentable"), "others may be added")
        #expect(!open.contains("import"), "of the module that it would import")
        #expect(open.contains("package static let bell = Cause(rawValue: \"bell\")"))
    }

    @Test func `a number of milliseconds is a duration, under its own name on the wire alone`() throws {
        let definition = try InterfaceDefinition(Self.text)
        let swift = SwiftWriter.write(definition, source: Self.text, known: [:], module: "DialtoneAPI")
        for part in [
            "            /// Before it is locked.\n            public var `defer`: Duration\n",
            "            public var lock: Duration?\n",
            "            public init(`defer`: Duration, lock: Duration? = nil, countsMilliseconds: [Int], "
                + "sinceMilliseconds: String) {\n                self.`defer` = `defer`\n",
            "let `defer`: Duration? = _fields.duration(\"deferMilliseconds\") "
                + "?? _fields.lacking(\"deferMilliseconds\")\n",
            "                self.lock = _fields.duration(\"lockMilliseconds\")\n",
            "guard let `defer`, let countsMilliseconds, let sinceMilliseconds else { return nil }\n",
            "                _fields.put(\"deferMilliseconds\", `defer`)\n",
            "                if let lock { _fields.put(\"lockMilliseconds\", lock) }\n",
            "_fields.integers(\"countsMilliseconds\")", "_fields.text(\"sinceMilliseconds\")",
        ] {
            #expect(swift.contains(part), "\(part)\nis not in\n\(swift)")
        }
    }

    @Test func `it is written as a page of the manual, in which nothing of it means something to the reader of pages`()
        throws
    {
        let text = Self.text.replacing("# Its name.", with: "# .Its name with \\x41.")
        let page = ManualWriter.write([try InterfaceDefinition(text)], date: "May 1, 2026")
        for part in [
            ".Dd May 1, 2026\n", ".Sh ORG.EXAMPLE.DOORS\nDoors of a house.\n",
            ".Sy org.example.Doors.Watch\n.Pp\nDoors, and each change.\n.Pp\nIt answers with a stream",
            ".It Fa causes : []Cause\n", ".It Cm open\none can go through.\n",
            "\n\\&.Its name with \\ex41.\n",
        ] {
            #expect(page.contains(part), "\(part)\nis not in\n\(page)")
        }
        #expect(!page.contains("SPDX") && !page.contains("flag]"))
    }
}
