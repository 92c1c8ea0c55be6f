// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

/// Which path a flow goes by: the one to its own other end. Mostly that is the connection's path. It is another one if
/// the name has several addresses, if the hosts of its services are elsewhere, or if the flow uses another uplink than
/// the kernel's. The agent then watches both until the flow ends.
struct Way {
    /// What becomes of the watch over a path of its own.
    enum Watch: Hashable {
        case unchanged
        /// The watch begins, or begins again for another target.
        case begins
        case ends
    }

    private enum Source {
        case connection
        /// `nil` before it was heard of.
        indirect case own(Path?)
    }

    private var source = Source.connection
    /// Whether the flow's socket is bound to its interface: its packets leave by that whatever the kernel chooses.
    let isBound: Bool
    /// Whether the flow goes by another uplink than the one that the kernel chooses.
    private(set) var isDetour: Bool

    /// By the connection's path; a flow whose socket is bound is a detour until that path says otherwise.
    init(isBound: Bool = false) { (self.isBound, isDetour) = (isBound, isBound) }

    // MARK: - What happens

    /// The connection's path is this one; `nil` where it is not known.
    ///
    /// - Parameters:
    ///   - isNamed: whether the remote is a name: where it is an address, each path leads to it.
    ///   - known: the path to the flow's other end, as far as it was known before.
    mutating func connectionsPath(
        is path: Path?, of ends: FlowEnds, isNamed: Bool, after known: Path?
    ) -> Watch {
        let wasDetour = isDetour
        if isBound, let path, path.status == .satisfied, path.source != nil {
            // A flow over another uplink is one like any other while the kernel chooses that for it.
            isDetour = !(path.leadsBack(to: ends) && path.interface?.name == ends.interface)
        }
        let leadsThere = !isNamed || path.map { $0.destination == ends.remote.address } ?? true
        switch (source, !isDetour && leadsThere) {
        case (.connection, true): return .unchanged
        case (.own, false): return isDetour == wasDetour ? .unchanged : .begins
        case (.connection, false):
            source = .own(known)
            return .begins
        case (.own, true):
            source = .connection
            return .ends
        }
    }

    /// The path that is watched apart is this one.
    mutating func ownPath(is path: Path) { source = .own(path) }

    /// Nothing that is known of it counts any more, and it is asked for.
    mutating func mustBeAsked() { source = .own(nil) }

    /// An address is gone.
    ///
    /// - Returns: whether the path that is watched apart led from it.
    mutating func forget(source address: IPAddress) -> Bool {
        guard case .own(var path?) = source, path.source == address else { return false }
        path.source = nil
        source = .own(path)
        return true
    }

    // MARK: - What follows

    /// Whether a path is watched for it beside the connection's.
    var isApart: Bool { if case .own = source { true } else { false } }

    /// Whether it is not known yet which way leads to the flow's other end.
    var isAwaited: Bool { if case .own(nil) = source { true } else { false } }

    /// The path that is watched apart, as far as it is known.
    var ownPath: Path? { if case .own(let path) = source { path } else { nil } }

    /// The path, as far as it is known.
    func path(orConnections path: Path?) -> Path? { isApart ? ownPath : path }
}
