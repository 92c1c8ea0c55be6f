// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import DialtoneNetworkPath
import DialtonePlatform
import Dispatch
import Reachability

/// Writes down the paths that the library reports.
final class PathRecorder: Sendable {
    /// One call of a callback.
    struct Report: Sendable {
        let path: Path
        let changes: [PathChange]
    }

    let queue = DispatchQueue(label: "test")
    private let signal = ChangeSignal()
    private let state = Lock<(reports: [Report], taken: Int)>(([], 0))
    private let source = Lock<(HostReachability?, PathMonitor?)>((nil, nil))

    private let hearsDNS: Bool

    init() {
        hearsDNS = false
    }

    /// The paths to a host.
    ///
    /// - Parameter hearsDNS: whether the engine's name servers are the test's own, so that their change means
    /// something.
    init(_ target: Target, by engine: NetworkState, hearsDNS: Bool = false) {
        self.hearsDNS = hearsDNS
        let host = HostReachability(target, on: { engine })
        host.setCallback(on: queue) { [weak self] in self?.add($0, $1) }
        source.withLock { $0.0 = host }
    }

    /// The paths of the network as such.
    init(network requirement: InterfaceRequirement, by engine: NetworkState) {
        hearsDNS = false
        let monitor = PathMonitor(requirement, on: { engine })
        monitor.pathUpdateHandler = { [weak self] in self?.add($0, []) }
        monitor.start(queue: queue)
        source.withLock { $0.1 = monitor }
    }

    var count: Int { state.withLock { $0.reports.count } }
    var all: [Path] { reports.map(\.path) }
    var reports: [Report] { state.withLock { $0.reports } }

    func add(_ path: Path, _ changes: [PathChange]) {
        // The name servers are those of the machine that runs the tests; which of them the Lab reaches means nothing.
        let named = changes.filter { $0 != .dns || hearsDNS }
        if named.isEmpty, !changes.isEmpty { return }
        state.withLock { $0.reports.append(Report(path: path, changes: named)) }
        signal.notify()
    }

    /// The next path that `matches`, after the one returned last.
    @discardableResult
    func next(_ awaited: String, where matches: (Path) -> Bool) async throws -> Path {
        try await nextReport(awaited, where: matches).path
    }

    /// The very next report, whatever it says: nothing was reported in between.
    @discardableResult
    func nextReport(_ awaited: String, where matches: (Path) -> Bool = { _ in true }) async throws -> Report {
        try await signal.wait(for: awaited, describe: { self.all.map { "\($0)" }.joined(separator: "\n") }) {
            state.withLock { state in
                let new = state.reports.indices.dropFirst(state.taken)
                guard let index = new.first(where: { matches(state.reports[$0].path) }) else { return nil }
                state.taken = index + 1
                return state.reports[index]
            }
        }
    }
}
