// SPDX-License-Identifier: Apache-2.0

import PackagePlugin

/// Has a target's Varlink definitions made into Swift as it is built.
@main struct VarlinkSwiftPlugin: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        // In this order an interface comes before those that refer to its types.
        let order = ["org.dialtone.Network.varlink", "org.dialtone.Connections.varlink"]
        let inputs = order.map { target.directoryURL.appending(path: $0) }
        let outputs = order.map { context.pluginWorkDirectoryURL.appending(path: "\($0).swift") }
        return [
            .buildCommand(
                displayName: "Making Swift of \(order.joined(separator: " and "))",
                executable: try context.tool(named: "varlink-swift").url,
                arguments: zip(inputs, outputs).flatMap { [$0.path(), $1.path()] },
                inputFiles: inputs, outputFiles: outputs)
        ]
    }
}
