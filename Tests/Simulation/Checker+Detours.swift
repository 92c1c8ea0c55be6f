// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath

@testable import DialtoneConnection

// Other uplinks than the one that the kernel chooses: when one is looked for, and which flow goes by one.

extension Checker {
    /// Takes note of what shows that a way is silent.
    func noteSilence(_ failure: FlowFailure) {
        switch failure {
        case .timedOut, .hostUnreachable, .networkUnreachable, .tls(.timedOut): hasSeenSilence = true
        case .refused, .reset, .addressNotAvailable, .forbidden, .heldBack, .tls, .securingEnded, .other: break
        }
    }

    /// Whether another uplink may be looked for.
    func checkSearch(for remote: Endpoint, around interface: Int, _ now: Duration) throws {
        let isAllowed = dial?.mayDetour ?? false || known.policy.mayDetour
        try require(isAllowed, .detoursInNeed, "\(remote) against the policy")
        let silent = known.attempts.first { !$0.value.isDetour && $0.value.request.remote == remote }
        guard let (epoch, socket) = silent, socket.request.interfaceIndex == interface else {
            throw Violation(invariant: .detoursInNeed, detail: "\(remote) around \(interface) is not tried")
        }
        // A handshake has a search of its own.
        let searches = socket.local == nil ? dial?.searches.insert(remote) : dial?.lateSearches.insert(remote)
        try require(searches?.inserted ?? false, .detoursInNeed, "\(remote) twice")
        let others = known.attempts.values.filter { $0.isDetour && $0.request.remote == remote }
        try require(others.isEmpty, .detoursInNeed, "\(remote) is tried by another uplink")
        var patience = hasSeenSilence ? Duration.zero : .milliseconds(3500)
        if socket.local != nil { patience = min(.milliseconds(3500), (dial?.patience ?? .zero) / 2) }
        let silence = now - (known.begun[epoch] ?? now)
        try require(silence >= patience, .detoursInNeed, "\(remote) after \(silence)")
    }

    /// Takes an attempt for that of a detour that was found, if it is one.
    func isDetour(_ request: FlowRequest) throws -> Bool {
        guard dial?.tried.contains(request.remote) == true, let detour = dial?.detours[request.remote] else {
            return false
        }
        dial?.detours[request.remote] = nil
        let isIt =
            request.interfaceIndex == detour.interfaceIndex && request.source == detour.source
            && request.isBoundToInterface
        try require(isIt, .detoursInNeed, "\(request) and not \(detour)")
        return true
    }

    /// A flow over another uplink is one like any other while the path leads that way.
    func settleDetour() {
        guard let standing = known.standing, let socket = known.sockets[standing], socket.request.isBoundToInterface,
            let path = known.path, path.status == .satisfied, let source = path.source
        else { return }
        let isByKernel =
            source == socket.local?.address && path.interface?.index == socket.request.interfaceIndex
        known.sockets[standing]?.isDetour = !isByKernel
    }
}

extension Checker.Knowledge {
    /// Whether the flow that stands goes by another uplink than the one that the kernel chooses.
    var isDetour: Bool { standing.flatMap { sockets[$0] }?.isDetour ?? false }

    /// Whether a flow over another uplink may go back to the first.
    var mayGoBack: Bool {
        guard policy.movesToBetterPath, policy.redials, !ownership.hasArrivals, ownership.session != .opening, let path,
            path.status == .satisfied
        else { return false }
        return path.interface?.index != standing.flatMap { sockets[$0] }?.request.interfaceIndex
    }
}

extension ConnectionPolicy {
    /// Whether another uplink may be tried at all.
    var mayDetour: Bool { triesOtherUplinks && mark == nil }
}
