// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneVarlink

/// One call on a connection of its own.
@AgentQueue
final class PendingCall<M: VarlinkMethod> {
    private let connector: Connector
    private let parameters: M.Parameters
    private let descriptors: VarlinkDescriptors?
    /// How long its answer may take; `nil` for as long as it does.
    private let timeout: Duration?
    private var completion: (@AgentQueue (Result<VarlinkAnswer<M>, DialtoneError>) -> Void)?
    private var connection: VarlinkConnection?
    private var timer: Timers.Timer?
    private var isCancelled = false

    init(paths: [String], parameters: M.Parameters, descriptors: VarlinkDescriptors? = nil, timeout: Duration?) {
        connector = Connector(paths: paths)
        self.parameters = parameters
        self.descriptors = descriptors
        self.timeout = timeout
    }

    /// Calls, and then `completion` once.
    func start(_ completion: @escaping @AgentQueue (Result<VarlinkAnswer<M>, DialtoneError>) -> Void) {
        guard !isCancelled else { return completion(.failure(.cancelled)) }
        self.completion = completion
        timer = timeout.map { timeout in
            Timers.shared.schedule(after: timeout) { [self] in
                finish(.failure(.timedOut(method: M.name, timeout)))
            }
        }
        connector.connect { [self] result in
            switch result {
            case .failure(let error): finish(.failure(error))
            case .success(let connection):
                self.connection = connection
                connection.callWithDescriptors(M.self, parameters, descriptors) {
                    self.finish($0.mapError { DialtoneError($0, during: M.name) })
                }
            }
        }
    }

    /// Hangs up, if there is no answer yet.
    func cancel() {
        isCancelled = true
        finish(.failure(.cancelled))
    }

    private func finish(_ result: Result<VarlinkAnswer<M>, DialtoneError>) {
        guard let completion else { return }
        self.completion = nil
        timer?.cancel()
        connector.cancel()
        connection?.close()
        completion(result)
    }
}
