// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
package import DialtonePlatform

/// Starts and thaws units, by the service manager's D-Bus interface (org.freedesktop.systemd1(5)).
///
/// It is connected for as long as a request waits, since it hears of every job of every unit then: sd-bus matches no
/// argument behind one that is not a string (`bus_message_get_arg`), and a job's first is its number.
@AgentQueue
package final class UnitManager {
    /// What keeps a unit from being started or thawed, for the end of a sentence.
    package struct Failure: Error, Hashable, Sendable {
        /// The manager's word, or what became of the bus.
        package let text: String
    }

    /// What became of a request.
    package typealias Outcome = Result<Void, Failure>

    /// How long the manager may take over a request: as long as systemd lets a unit start by default
    /// (`DefaultTimeoutStartSec=`), beyond which it gives up by itself.
    private static let limit = Duration.seconds(90)
    /// Requests at a time; each is a wake of one connection's client.
    private static let mostRequests = 1024

    private enum Request {
        case start
        case thaw
    }

    @AgentQueue
    private final class Pending {
        let request: Request
        let unit: String
        var completion: (@AgentQueue (Outcome) -> Void)?
        var timer: Timers.Timer?
        var job = ManagerJob()

        init(_ request: Request, _ unit: String, _ completion: @escaping @AgentQueue (Outcome) -> Void) {
            self.request = request
            self.unit = unit
            self.completion = completion
        }
    }

    private let bus: ManagerBus
    private var pending: [Pending] = []

    /// The manager behind a bus.
    ///
    /// - Parameter address: where the bus is, in D-Bus's form; `nil` for the system's.
    package init(address: String? = nil) {
        bus = ManagerBus(address: address)
        bus.client = self
    }

    /// Starts a unit, and tells when it has started (`systemctl start`). A unit that runs is left alone.
    ///
    /// - Parameter completion: is called once, later.
    package func start(_ unit: String, _ completion: @escaping @AgentQueue (Outcome) -> Void) {
        take(Pending(.start, unit, completion))
    }

    /// Thaws a unit that was frozen (`systemctl thaw`). One that is not is left alone.
    ///
    /// - Parameter completion: is called once, later.
    package func thaw(_ unit: String, _ completion: @escaping @AgentQueue (Outcome) -> Void) {
        take(Pending(.thaw, unit, completion))
    }

    private func take(_ request: Pending) {
        guard pending.count < Self.mostRequests else {
            return AgentQueue.async { request.completion?(.failure(Failure(text: "too many requests wait"))) }
        }
        pending.append(request)
        request.timer = Timers.shared.schedule(after: Self.limit) { [weak self] in
            self?.finish(request, .failure(Failure(text: "the service manager took too long")))
        }
        bus.connect()
        if bus.isConnected { send(request) }
    }

    private func send(_ request: Pending) {
        switch request.request {
        case .start:
            call("StartUnit", [request.unit, "replace"], request) { manager, message in
                guard let job = message.string() else {
                    return manager.finish(request, .failure(Failure(text: "the service manager named no job")))
                }
                if let result = request.job.isNamed(job) { manager.finish(request, Self.outcome(result)) }
            }
        case .thaw:
            call("ThawUnit", [request.unit], request) { manager, _ in manager.finish(request, .success(())) }
        }
    }

    private func call(
        _ method: String, _ arguments: [String], _ request: Pending,
        _ body: @escaping @AgentQueue (UnitManager, BusMessage) -> Void
    ) {
        let handler: @AgentQueue (Result<BusMessage, BusFailure>) -> Void = { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .success(let message): body(self, message)
            case .failure(let failure): finish(request, .failure(Failure(text: "\(failure)")))
            }
        }
        switch request.request {
        case .start: bus.callForJob(method, arguments, handler)
        case .thaw: bus.call(method, arguments, handler)
        }
    }

    /// What a job's result says (org.freedesktop.systemd1(5), `JobRemoved`). Of a start, `skipped` says that the unit
    /// ran already.
    private static func outcome(_ result: String) -> Outcome {
        switch result {
        case "done", "skipped": .success(())
        default: .failure(Failure(text: "the unit's start ended as \"\(result)\""))
        }
    }

    private func finish(_ request: Pending, _ outcome: Outcome) {
        guard let completion = request.completion else { return }
        request.completion = nil
        request.timer?.cancel()
        pending.removeAll { $0 === request }
        AgentQueue.async { [weak self] in
            completion(outcome)
            self?.bus.release()
        }
    }
}

extension UnitManager: ManagerClient {
    var isWaiting: Bool { !pending.isEmpty }

    func busConnected() { for request in pending { send(request) } }

    func busLost(_ reason: String) {
        // The manager may have done what it was asked or not; the caller decides whether to ask again.
        for request in pending { finish(request, .failure(Failure(text: reason))) }
    }

    func jobEnded(_ job: String, of unit: String, _ result: String) {
        for request in pending where request.unit == unit && request.request == .start {
            if let result = request.job.ended(job, result) { finish(request, Self.outcome(result)) }
        }
    }
}
