// SPDX-License-Identifier: Apache-2.0

import Foundation
import PackagePlugin

/// Has a target's Varlink definitions made into Swift as it is built.
@main struct VarlinkSwiftPlugin: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        // Interfaces come before those that refer to their types.
        let first = "org.dialtone.Network.varlink"
        let files = try FileManager.default.contentsOfDirectory(atPath: target.directoryURL.path(percentEncoded: false))
            .filter { $0.hasSuffix(".varlink") }
            .sorted { ($0 == first ? "" : $0) < ($1 == first ? "" : $1) }
        let inputs = files.map { target.directoryURL.appending(path: $0) }
        let outputs = files.map { context.pluginWorkDirectoryURL.appending(path: "\($0).swift") }
        return [
            .buildCommand(
                displayName: "Making Swift of \(files.joined(separator: " and "))",
                executable: try context.tool(named: "varlink-swift").url,
                arguments: [target.name]
                    + zip(inputs, outputs).flatMap { [$0, $1] }.map { $0.path(percentEncoded: false) },
                inputFiles: inputs, outputFiles: outputs)
        ]
    }
}
