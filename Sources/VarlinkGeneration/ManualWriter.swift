// SPDX-License-Identifier: Apache-2.0

package import DialtoneVarlinkDefinition

/// Writes interfaces as a page of the manual, in mdoc(7).
package struct ManualWriter {
    private var lines: [String] = []

    /// The page `dialtone-varlink`.
    package static func write(_ definitions: [InterfaceDefinition], date: String) -> String {
        var writer = ManualWriter()
        writer.head(date)
        for definition in definitions { writer.add(definition) }
        writer.lines += [
            ".Sh SEE ALSO", ".Xr dialtone 1 ,", ".Xr dialtone.toml 5 ,", ".Xr dialtoned 8", ".Pp",
            ".Lk https://varlink.org",
        ]
        return writer.lines.joined(separator: "\n") + "\n"
    }

    private mutating func head(_ date: String) {
        lines = [
            ".Dd \(date)", ".Dt DIALTONE-VARLINK 7", ".Os", ".Sh NAME", ".Nm dialtone-varlink",
            ".Nd interfaces of the Dialtone agent", ".Sh DESCRIPTION",
        ]
        text([
            "Programs talk to the agent over a Unix socket, in the protocol Varlink: JSON messages, each ended by a",
            "NUL. The machine's agent listens at /run/dialtone/dialtone.sock, a user's own agent at",
            "$XDG_RUNTIME_DIR/dialtone/dialtone.sock.",
        ])
        lines.append(".Pp")
        text([
            "A field whose type has a question mark may be left out, or be null. Later versions take nothing away.",
            "They may add methods, errors and fields; a field of a call can then be left out. They may add values to",
            "an enumeration if this page says so, or if only calls have that enumeration.",
        ])
    }

    private mutating func add(_ definition: InterfaceDefinition) {
        lines.append(".Sh \(definition.name.uppercased())")
        text(definition.comment)
        lines.append(".Ss Methods")
        for method in definition.methods {
            entry("\(definition.name).\(method.name)", method.comment)
            if method.isStream {
                lines.append(".Pp")
                text(["It answers with a stream: call it with \"more\"."])
            }
            fields(method.parameters, "Parameters:")
            fields(method.reply, "Reply:")
        }
        lines.append(".Ss Types")
        for type in definition.types { declaration(type) }
        lines.append(".Ss Errors")
        for error in definition.errors { declaration(error) }
    }

    private mutating func declaration(_ declaration: InterfaceDefinition.Declaration) {
        switch declaration.kind {
        case .object(let members):
            entry(declaration.name, declaration.comment)
            fields(members, nil)
        case .enumeration(let values):
            let meanings = Meanings(of: values, in: declaration.comment)
            entry(declaration.name, meanings.introduction)
            lines.append(".Bl -tag -width Ds -compact")
            for value in values {
                lines.append(".It Cm \(value)")
                text(meanings[value])
            }
            lines.append(".El")
        default:
            entry("\(declaration.name): \(name(of: declaration.kind))", declaration.comment)
        }
    }

    private mutating func entry(_ name: String, _ comment: [String]) {
        lines += [".Pp", ".Sy \(name)", ".Pp"]
        text(comment)
    }

    private mutating func fields(_ fields: [InterfaceDefinition.Field], _ title: String?) {
        guard !fields.isEmpty else { return }
        if let title { lines += [".Pp", title] }
        lines.append(".Bl -tag -width Ds -compact")
        for field in fields {
            lines.append(".It Fa \(field.name) : \(name(of: field.kind))")
            text(field.comment)
        }
        lines.append(".El")
    }

    private func name(of kind: InterfaceDefinition.Kind) -> String {
        switch kind {
        case .bool: "bool"
        case .int: "int"
        case .float: "float"
        case .string: "string"
        case .optional(let kind): "?\(name(of: kind))"
        case .array(let kind): "[]\(name(of: kind))"
        case .named(let name): name
        case .enumeration(let values): "(\(values.joined(separator: ", ")))"
        case .object: "object"
        }
    }

    /// Adds plain text: what means something to mdoc at the beginning of a line, or behind a backslash, does not there.
    private mutating func text(_ comment: [String]) {
        for line in comment.drop(while: \.isEmpty) {
            let escaped = line.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\e")
            let isRequest = escaped.hasPrefix(".") || escaped.hasPrefix("'")
            lines.append(line.isEmpty ? ".Pp" : (isRequest ? "\\&" : "") + escaped)
        }
    }
}
