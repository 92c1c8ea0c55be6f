// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Reachability

// The samples of README.md and of the library's documentation, for the compiler: nothing runs them.
// `DocumentedCodeTests` holds each sample against this file.

private func callbacks() {
    let monitor = PathMonitor()  // or PathMonitor(requiring: .wifi)
    monitor.pathUpdateHandler = { path in print(path.status, path.interface?.name ?? "-") }
    monitor.start(queue: .main)

    let host = HostReachability("sip.example.com", port: 5061)
    host.setCallback(on: .main) { path, changes in print(path.reason ?? "reachable", changes) }
}

private func follow() async {
    for await (path, changes) in HostReachability("sip.example.com", port: 5061).updates {
        print(path.status, path.interface?.name ?? "-", changes)
    }
}

private func explain() async throws {
    let explanation = try await HostReachability("sip.example.com", port: 5061).explanation()
    print(explanation.path.reason ?? "reachable")
    for step in explanation.steps where step.isDecisive { print(step.subject, step.text) }
}
