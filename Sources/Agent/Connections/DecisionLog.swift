// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtoneConnectionIO
internal import DialtoneNetworkPath
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtoneSystemd
internal import Logging
internal import Reachability

/// Writes down what the network did and what the agent decided, with the reasons.
@AgentQueue
final class DecisionLog {
    private let logger: Logger
    private let limits: LimitedLog
    private var network: PathObservation?

    init(_ engine: NetworkState, _ registry: ConnectionRegistry, _ logger: Logger) {
        self.logger = logger
        limits = LimitedLog(logger)
        network = engine.observe(.network(.any), isPassive: true) { [weak self] path, changes in
            self?.log(path, changes)
        }
        registry.onEvent { [weak self] in self?.log($0) }
        registry.onAnswered = { [weak self] in self?.logAnswer(on: $0) }
    }

    /// A connection was told what cannot be.
    func log(objection: String, of connection: ConnectionLabel?) {
        guard limits.admits(.error, .objection, of: connection?.user) else { return }
        logger.error(
            "a fault of the agent's, please report it: a connection was told what cannot be, and ignored it",
            metadata: [
                "connection": "\(connection?.name ?? "")", "owner": "\(connection.map { "\($0.user)" } ?? "")",
                "told": "\(objection)",
            ])
    }

    private func logAnswer(on connection: ConnectionKey) {
        guard limits.admits(.debug, .answer, of: connection.owner) else { return }
        logger.debug(
            "answered a message of the server's",
            metadata: ["connection": "\(connection.name)", "owner": "\(connection.owner)"])
    }

    private func log(_ path: Path, _ changes: [PathChange]) {
        guard limits.admits(.info, .network, of: nil) else { return }
        var metadata: Logger.Metadata = [
            "status": "\(path.status.rawValue)",
            "changes": "\(changes.map(\.rawValue).joined(separator: ","))",
            "generation": "\(path.generation)",
        ]
        metadata["reason"] = path.reason.map { "\($0.rawValue)" }
        metadata["interface"] = path.interface.map { "\($0.name)" }
        metadata["gateway"] = path.gateway.map { "\($0)" }
        metadata["source"] = path.source.map { "\($0)" }
        logger.log(
            level: .info, .networkChanged, changes.isEmpty ? "the network's path" : "the network's path changed",
            metadata: metadata)
    }

    private func log(_ recorded: RecordedEvent) {
        if let report = recorded.wake?.report { return log(report, of: recorded) }
        let event = recorded.event
        let level = Self.level(of: event)
        // A thousand connections make four events each in one turn; what nobody reads is not put into words.
        guard limits.admits(level, .event(event.kind, event.status.state), of: recorded.owner) else { return }
        var metadata: Logger.Metadata = [
            "connection": "\(recorded.name)",
            "owner": "\(recorded.owner)",
            "remote": "\(recorded.remoteWithoutQuery)",
            "cause": "\(event.reason.cause.rawValue)",
            "previous": "\(event.previousState.rawValue)",
            "state": "\(event.status.state.rawValue)",
            "epoch": "\(event.status.epoch)",
            "attempt": "\(event.status.attempt)",
        ]
        metadata["interface"] = event.status.interface.map { "\($0)" }
        logger.log(level: level, JournalMessage(event), "\(event.reason)", metadata: metadata)
        // What only a person can mend is said in full, once, when it is found.
        if event.status.state == .failed || event.reason.isFirstRepetition, event.kind == .stateChanged,
            let advice = event.reason.advice, limits.admits(.warning, .advice, of: recorded.owner)
        {
            logger.log(
                level: .warning, .advice, "\(advice)",
                metadata: [
                    "connection": "\(recorded.name)", "owner": "\(recorded.owner)",
                    "cause": "\(event.reason.cause.rawValue)",
                ])
        }
    }

    private func log(_ report: WakeReport, of recorded: RecordedEvent) {
        let level = Self.level(of: report)
        guard limits.admits(level, .wake(level), of: recorded.owner) else { return }
        let wake = ConnectionsAPI.Wake(report)
        var metadata: Logger.Metadata = [
            "connection": "\(recorded.name)",
            "owner": "\(recorded.owner)",
            "wake": "\(wake.number)",
            "stage": "\(wake.stage.rawValue)",
            "reasons": "\(wake.reasons.map(\.rawValue).joined(separator: ","))",
            "attempts": "\(wake.attempts)",
        ]
        metadata["means"] = wake.means.map { "\($0)" }
        metadata["detail"] = wake.detail.map { "\($0)" }
        metadata["milliseconds"] = wake.after.map { "\($0.milliseconds)" }
        logger.log(level: level, JournalMessage(report), "a wake of the client", metadata: metadata)
    }

    /// What an operator has to look into: a client that could not be woken, though there was a way to, or does not
    /// park.
    private static func level(of report: WakeReport) -> Logger.Level {
        switch report.kind {
        case .began, .joined, .attempted, .acknowledged: .info
        case .attemptFailed, .overran: .warning
        case .failed: report.wake.attempts > 0 ? .warning : .info
        case .programEnded(let end): end.isFailure ? .notice : .info
        }
    }

    /// What an operator wants to see without asking for more: a connection that came up, went down, or failed; of one
    /// that does not come up the first failure. The steps in between are for who looks closer.
    nonisolated static func level(of event: ConnectionEvent) -> Logger.Level {
        switch event.status.state {
        case .failed: .warning
        case .ready where event.previousState == .verifying: event.reason == .replaced ? .notice : .info
        case .ready, .waiting, .closed: event.kind == .stateChanged ? .notice : .info
        case .verifying: .info
        // The second attempt is next: this was the first failure.
        case .backingOff where event.kind == .stateChanged && event.status.attempt == 2: .notice
        case .resolving, .connecting, .securing, .backingOff: event.previousState.hasFlow ? .notice : .info
        }
    }
}
