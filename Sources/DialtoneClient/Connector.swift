// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc

/// Connects to the first of several paths that somebody listens on.
@AgentQueue
final class Connector {
    /// The kernel refuses a Unix connection at once when too many clients wait, and does not tell when there is room
    /// again. A daemon that is busy is back within milliseconds, one that is stuck is not worth more than seconds.
    private static let retryInterval = Duration.milliseconds(20)
    private static let retries = 250

    private let paths: [String]
    private var timer: Timers.Timer?

    init(paths: [String]) {
        self.paths = paths
    }

    /// Connects and calls `completion`, unless it is cancelled before.
    func connect(_ completion: @escaping @AgentQueue (Result<VarlinkConnection, DialtoneError>) -> Void) {
        connect(retries: Self.retries, completion)
    }

    /// Gives up a connection that is still to be made.
    func cancel() {
        timer?.cancel()
    }

    private func connect(
        retries: Int, _ completion: @escaping @AgentQueue (Result<VarlinkConnection, DialtoneError>) -> Void
    ) {
        for path in paths {
            do throws(SystemError) {
                return completion(.success(try VarlinkConnection.connect(to: path)))
            } catch {
                switch error.code {
                case ENOENT, ECONNREFUSED: continue
                case EACCES, EPERM: return completion(.failure(.accessDenied(path: path)))
                case EAGAIN where retries > 0:
                    timer = Timers.shared.schedule(after: Self.retryInterval) { [self] in
                        connect(retries: retries - 1, completion)
                    }
                    return
                case EAGAIN: return completion(.failure(.busy(path: path)))
                default: return completion(.failure(.unreachable(error)))
                }
            }
        }
        completion(.failure(.notRunning(paths: paths)))
    }
}

extension DialtoneError {
    /// What ended a call of `method`.
    init(_ error: VarlinkCallError, during method: String) {
        switch error {
        case .refused(let failure): self = .refused(method: method, failure)
        case .closed: self = .cancelled
        case .hungUp, .failed, .violated: self = .interrupted(method: method, error)
        }
    }
}
