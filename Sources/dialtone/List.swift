// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePresentation
internal import DialtoneVarlink

struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the connections.")

    @OptionGroup
    var selection: SelectionOptions

    @OptionGroup
    var owner: OwnerOption

    @Flag(help: "Write one JSON object a line, a connection each.")
    var json = false

    @OptionGroup
    var color: ColorOption

    func validate() throws { try selection.refuse(json: json) }

    func run() async throws {
        let all = try await DialtoneClient().call(ConnectionsAPI.List.self, VarlinkEmpty()).connections
        let shown = selection.selection(owner).of(all)
        if json || selection.output == .json {
            for connection in shown { Output.write(json: connection) }
        } else if let format = selection.format {
            Output.write(shown.map { format.text(of: $0) })
        } else {
            let table = ConnectionTable(
                shown, now: .now(), for: Output.reader, isWide: selection.output == .wide)
            Output.write(table.lines(Output.style))
        }
    }
}
