// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath
package import DialtonePlatform
internal import DialtoneResolver

/// A question that is being looked into. Dropping the last reference does not end it; ``cancel()`` does.
@AgentQueue
package final class PathInspection {
    fileprivate var query: Query?
    fileprivate var isCancelled = false

    /// Ends it. Its handler is not called any more.
    package func cancel() {
        isCancelled = true
        query?.cancel()
        query = nil
    }
}

extension NetworkState {
    /// What became of a question.
    package typealias Inspected = Result<Explanation, PathInspector.Failure>

    /// Finds out why the path to a target is as it is, or what it would be without an interface.
    ///
    /// - Parameters:
    ///   - target: the host; `nil` for the network as such.
    ///   - user: whose packets those for the network as such are; a target names its own.
    ///   - interface: the name of an interface to ignore.
    ///   - asker: who is charged for questions to the name servers (``mayAsk``); `nil` for nobody.
    ///   - turn: runs what it is given when it is the asker's turn, or drops it: the kernel is asked in it, which takes
    ///     milliseconds, and the names of a thousand questions may be resolved by one answer.
    ///   - handler: is called once, on the agent's queue: for a name when it is resolved or known not to be, for a way
    ///     by a gateway that the kernel is asking for when that answers or has failed, in this turn else. Where the
    ///     kernel cannot be asked it gets a path of unknown status.
    package func inspect(
        _ target: Target?, user: UInt32? = nil, without interface: String?, for asker: UInt32? = nil,
        inTurn turn: @escaping @AgentQueue (@escaping @AgentQueue () -> Void) -> Void = { $0() },
        _ handler: @escaping @AgentQueue (Inspected) -> Void
    ) -> PathInspection {
        let inspection = PathInspection()
        guard let target else {
            run(inspection, without: interface, inTurn: turn, handler) { try $0.explanationOfNetwork(for: user) }
            return inspection
        }
        switch target.host {
        case .address(let address):
            run(inspection, without: interface, inTurn: turn, handler) { try $0.explanation(of: target, at: [address]) }
        case .name(let name):
            let take: @AgentQueue (Result<Resolution, ResolutionError>) -> Void = { [self] answer in
                let finding = NameFinding(name, answer, servers: nameServers)
                turn { [self] in
                    run(inspection, without: interface, inTurn: turn, handler) { inspector in
                        guard case .addresses(let addresses, _) = finding.answer else {
                            return try inspector.explanation(unresolved: finding)
                        }
                        return try inspector.explanation(of: target, at: addresses, name: finding)
                    }
                }
            }
            if let asker, !mayAsk(asker) {
                take(.failure(.heldBack))
            } else {
                inspection.query = resolver.resolve(name) { take($0) }
            }
        }
        return inspection
    }

    /// Looks, and once more where it turns out that a gateway's answer is to be waited for.
    private func run(
        _ inspection: PathInspection, without interface: String?,
        inTurn turn: @escaping @AgentQueue (@escaping @AgentQueue () -> Void) -> Void,
        _ handler: @escaping @AgentQueue (Inspected) -> Void,
        _ explain: @escaping (PathInspector) throws -> Explanation
    ) {
        let (result, awaited) = inspected(without: interface, explain)
        guard !awaited.isEmpty else { return handler(result) }
        whenKnown(awaited) {
            turn { [weak self] in
                guard let self, !inspection.isCancelled else { return }
                handler(inspected(without: interface, explain).result)
            }
        }
    }

    /// The configured name servers; as they are now, where they are not followed.
    private var nameServers: [IPAddress] {
        (facts?.nameServers ?? nameFiles.readNameServers()).map(\.address)
    }

    private func inspected(
        without interface: String?, _ explain: (PathInspector) throws -> Explanation
    ) -> (result: Inspected, awaited: Set<NetworkSnapshot.Neighbour>) {
        let generation = snapshot.generation
        do {
            let inspector = try PathInspector(without: interface, costs: snapshot.costs, servers: nameServers)
            inspector.silence = { [prober] in prober.silence(of: $0) }
            let failed = snapshot.failedNeighbours
            inspector.isDead = { failed.contains($0) }
            var explanation = try explain(inspector)
            let awaited = inspector.awaited
            explanation.path = explanation.path.with(try inspector.facts())
            // What questions showed of them is beyond the kernel's knowledge.
            if facts?.areNameServersSilent == true { explanation.path.supportsDNS = false }
            explanation.path.generation = generation
            return (.success(explanation), awaited)
        } catch let failure as PathInspector.Failure {
            if case .noSuchInterface = failure { return (.failure(failure), []) }
        } catch {}
        // As everywhere: a kernel that cannot be asked is no reason to say "offline".
        return (.success(Explanation(path: .unknown(generation: generation, destination: nil))), [])
    }
}

extension NameFinding {
    /// What the resolver answered.
    init(_ name: String, _ answer: Result<Resolution, ResolutionError>, servers: [IPAddress]) {
        switch answer {
        case .success(let resolution):
            let origin: Origin =
                switch resolution.source {
                case .hostsFile: .hostsFile
                case .definition: .definition
                case .nameServer: .server(timeLeft: (resolution.expires ?? .zero) - BootClock.now())
                }
            self.init(name, .addresses(resolution.addresses, origin), servers: servers)
        case .failure(let error):
            self.init(name, error.isFinal ? .none(error.text) : .silence(error.text), servers: servers)
        }
    }
}

extension Explanation {
    /// The verdict where there was nothing to ask the kernel: the target wants an interface or a source address that
    /// the machine does not have.
    init(_ target: Target, foregone inquiry: Inquiry, on stack: LinkStack) {
        let path = inquiry.path(by: [], in: stack.snapshot)
        self.init(path: path, steps: [.foregone(target, on: stack)])
    }
}
