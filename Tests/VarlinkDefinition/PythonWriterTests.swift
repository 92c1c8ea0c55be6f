// SPDX-License-Identifier: Apache-2.0

import DialtoneVarlinkDefinition
import DialtoneVarlinkGeneration
import Foundation
import Testing

/// Interfaces as Python.
@Suite struct PythonWriterTests {
    private static let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../..").standardizedFileURL

    private static func definition(_ path: String) throws -> InterfaceDefinition {
        try InterfaceDefinition(String(contentsOf: root.appendingPathComponent(path), encoding: .utf8))
    }

    @Test func `the module of the library for Python is what the interfaces say`() throws {
        let definitions = try [
            "DialtoneAPI/org.dialtone.Network", "DialtoneAPI/org.dialtone.Connections", "Varlink/org.varlink.service",
        ].map { try Self.definition("Sources/\($0).varlink") }
        let module = Self.root.appendingPathComponent("Clients/Python/src/dialtone_client/interface.py")
        let lines = try String(contentsOf: module, encoding: .utf8).split(separator: "\n")
        let written = try PythonWriter.write(definitions).split(separator: "\n")
        let place = zip(lines, written).enumerated().first { $1.0 != $1.1 }
        #expect(
            lines == written,
            "\(module.path): Clients/Python/generate makes it again; first difference: \(String(describing: place))")
    }

    private static let text = #"""
        # Doors of a house.
        interface org.example.Doors

        # How a door is. open: one can go through.
        type State (open, halfShut)

        # Why it was opened. Others may be added.
        type Cause (bell, key)

        # A door.
        type Door (
          # Its name, such as "front door"
          name: string,
          since: ?string,
          # When it was built (RFC 3339).
          built: string,
          causes: []Cause
        )

        # Doors, and each change.
        # [Requires 'more' flag]
        method Watch(door: ?Door, from: ?int) -> (doors: []Door, kind: (all, change))

        method Hand(fileDescriptor: int, supportsIPv4: bool) -> ()

        # Closes it.
        #
        # A text with \n in it.
        method Close(deferMilliseconds: int, lockMilliseconds: ?int, weight: float) -> ()

        # There is no "door". Look elsewhere.
        error NoSuchDoor (name: string, state: State)
        """#

    @Test func `types, methods and errors are written as Python has them`() throws {
        let python = try PythonWriter.write([InterfaceDefinition(Self.text)])
        for part in [
            "class State(_v.Enumeration):\n    \"\"\"How a door is.\"\"\"\n\n    OPEN = \"open\"\n"
                + "    \"\"\"One can go through.\"\"\"\n    HALF_SHUT = \"halfShut\"\n",
            "class Cause(_v.OpenEnumeration):\n",
            // A mark before the end would end the comment one letter too early.
            "    name: str\n    \"\"\"Its name, such as \"front door\"\n    \"\"\"\n",
            "    built: datetime.datetime\n",
            "    causes: typing.Sequence[Cause]\n", "    since: typing.Optional[str] = None\n",
            "_v.Field(\"built\", \"built\", _v.TIME),\n", "_v.Field(\"since\", \"since\", _v.TEXT, optional=True),\n",
            "_v.Field(\"causes\", \"causes\", _v.Array(_v.Choice(Cause))),\n",
            "class WatchKind(_v.Enumeration):\n", "    kind: WatchKind\n",
            "class Watch(_v.StreamMethod[WatchReply]):\n", "    from_: typing.Optional[int] = None\n",
            "_v.Field(\"from_\", \"from\", _v.INTEGER, optional=True),\n",
            "_v.Field(\"door\", \"door\", _v.Nested(Door), optional=True),\n",
            "    _method = \"org.example.Doors.Watch\"\n    _reply = WatchReply\n",
            "class Hand(_v.Method[_v.Nothing]):\n", "    supports_ipv4: bool\n",
            "    r\"\"\"Closes it.\n\n    A text with \\n in it.\n    \"\"\"\n",
            "    defer: datetime.timedelta\n    weight: float\n    lock: typing.Optional[datetime.timedelta] = None\n",
            "_v.Field(\"defer\", \"deferMilliseconds\", _v.DURATION),\n",
            "_v.Field(\"weight\", \"weight\", _v.NUMBER),\n",
            "@dataclasses.dataclass(eq=False, repr=False)\nclass NoSuchDoor(_Refused):\n",
            "    \"org.example.Doors.NoSuchDoor\": (\n        NoSuchDoor,\n"
                + "        \"There is no \\\"door\\\"\",\n    ),\n",
            "__all__ = [\n    \"Cause\", \"Close\", \"Door\", \"Hand\", \"NoSuchDoor\", \"State\", \"Watch\", "
                + "\"WatchKind\", \"WatchReply\",\n]\n",
        ] {
            #expect(python.contains(part), "\(part)\nis not in\n\(python)")
        }
    }

    @Test func `what two interfaces declare alike is one class, and unlike is refused`() throws {
        let first = try InterfaceDefinition("interface a.B\n# One.\nerror Full (limit: int)")
        let alike = try InterfaceDefinition("interface a.C\n# Another.\nerror Full (limit: int)")
        let python = try PythonWriter.write([first, alike])
        #expect(python.split(separator: "class Full(").count == 2, "\(python)")
        #expect(python.contains("\"a.B.Full\": (\n        Full,\n        \"One\","), "\(python)")
        #expect(python.contains("\"a.C.Full\": (\n        Full,\n        \"Another\","), "\(python)")
        let unlike = try InterfaceDefinition("interface a.C\nerror Full (limit: string)")
        let error = #expect(throws: DefinitionError.self) { try PythonWriter.write([first, unlike]) }
        #expect(error?.description.contains("Full stands for two things") == true, "\(String(describing: error))")
    }

    @Test(arguments: ["code", "call", "parameters", "errorName", "args"])
    func `a parameter of an error does not take the place of what every error has`(name: String) throws {
        let definition = try InterfaceDefinition("interface a.B\nerror Full (\(name): int)")
        let error = #expect(throws: DefinitionError.self) { try PythonWriter.write([definition]) }
        #expect(error?.description.contains("Full") == true, "\(String(describing: error))")
    }
}
