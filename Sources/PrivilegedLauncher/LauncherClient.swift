// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
package import DialtonePlatform
package import DialtoneProcesses
internal import DialtoneVarlink
internal import Glibc

/// The daemon's end of its ``Launcher``: a connection for each attempt.
@AgentQueue
package final class LauncherClient {
    /// Where the launcher's socket is in the machine's own service.
    package nonisolated static let standardPath = "/run/dialtone/launcher.sock"
    /// How long the launcher may take: its start, and what it waits for itself.
    private static let limit = Duration.seconds(100)

    /// How long it may take to say how a program ended.
    private static let answerLimit = Duration.seconds(10)

    private let path: String

    package init(path: String = standardPath) { self.path = path }

    /// Whether there is a launcher that this process may ask.
    package var isThere: Bool { access(path, W_OK) == 0 }

    package func perform(
        _ order: WakeOrder, process: ProcessHandle?, socket: CInt?,
        ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void
    ) {
        var parameters = LauncherAPI.Wake.Parameters(order)
        let descriptors = VarlinkDescriptors()
        do throws(SystemError) {
            if let process { parameters.process = descriptors.append(try process.duplicateDescriptor()) }
            if let socket {
                let copy = try retryingInterrupts("passing the socket") { fcntl(socket, F_DUPFD_CLOEXEC, 0) }
                parameters.fileDescriptor = descriptors.append(OwnedDescriptor(copy))
            }
        } catch {
            return completion(Self.unreachable(error))
        }
        ask(LauncherAPI.Wake.self, parameters, descriptors, ended) { outcome in
            completion(outcome ?? .done)
        } program: {
            ($0.number, $0.process)
        }
    }

    /// Finds the program of an attempt that an earlier process of the daemon made, as far as the launcher knows of it.
    package func find(
        _ order: WakeOrder, ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void
    ) {
        ask(LauncherAPI.Find.self, .init(order), VarlinkDescriptors(), ended) { outcome in
            completion(outcome ?? .failed("the launcher knows of no program"))
        } program: {
            ($0.number, $0.process)
        }
    }

    /// Calls a method that may answer with a program, and follows that one.
    ///
    /// - Parameters:
    ///   - completion: gets the outcome; `nil` if the answer names no program.
    ///   - program: reads the program's number from an answer, and the place of its pidfd among the descriptors.
    private func ask<Method: VarlinkMethod>(
        _ method: Method.Type, _ parameters: Method.Parameters, _ descriptors: VarlinkDescriptors,
        _ ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Activator.Outcome?) -> Void,
        program: @escaping @AgentQueue (Method.Reply) -> (number: Int?, place: Int?)
    ) {
        let connection: VarlinkConnection
        do throws(SystemError) {
            connection = try VarlinkConnection.connect(to: path)
        } catch {
            return completion(Self.unreachable(error))
        }
        let timer = Timers.shared.schedule(after: Self.limit) { connection.close() }
        connection.callWithDescriptors(method, parameters, descriptors) { result in
            timer.cancel()
            switch result {
            case .success(let answer):
                let (number, place) = program(answer.reply)
                if let number {
                    return Self.follow(number, place, answer.descriptors, connection, ended, completion)
                }
                connection.close()
                completion(nil)
            case .failure(let error):
                connection.close()
                completion(.failed(Self.text(error)))
            }
        }
    }

    private static func unreachable(_ error: SystemError) -> Activator.Outcome {
        .failed("dialtone-launcher.socket: \(error)")
    }

    private static func text(_ error: VarlinkCallError) -> String {
        if case .refused(let failure) = error, let known = failure.decoded(as: LauncherAPI.Failed.self) {
            return known.reason
        }
        return "the launcher: \(error)"
    }

    /// Waits for the end of a program that was launched.
    private static func follow(
        _ number: Int, _ place: Int?, _ descriptors: VarlinkDescriptors, _ connection: VarlinkConnection,
        _ ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void
    ) {
        guard let place, let descriptor = descriptors.take(place) else {
            connection.close()
            return completion(.failed("the launcher gave no hold of the program"))
        }
        let process = ProcessHandle(descriptor, number: Int32(clamping: number))
        completion(.launched(process))
        awaitEnd(of: process, on: connection, ended)
    }

    /// Tells of the end of a program, one that an earlier process of the daemon had launched.
    package func follow(_ process: ProcessHandle, ended: @escaping @AgentQueue (ProgramEnd) -> Void) {
        do throws(SystemError) {
            Self.awaitEnd(of: process, on: try VarlinkConnection.connect(to: path), ended)
        } catch {
            process.awaitUnseenEnd(ended)
        }
    }

    private static func awaitEnd(
        of process: ProcessHandle, on connection: VarlinkConnection,
        _ ended: @escaping @AgentQueue (ProgramEnd) -> Void
    ) {
        // The flow of a program that has ended waits for this answer. A launcher that hangs must not hold it.
        let timer = process.isAlive ? nil : Timers.shared.schedule(after: answerLimit) { connection.close() }
        connection.call(LauncherAPI.Await.self, .init(number: Int(process.number))) { result in
            timer?.cancel()
            connection.close()
            switch result {
            case .success(let reply): ended(ProgramEnd(reply))
            case .failure:
                // The launcher that launched it is gone, and the program may not be.
                process.awaitUnseenEnd(ended)
            }
        }
    }
}

extension ProgramEnd {
    fileprivate init(_ reply: LauncherAPI.Await.Reply) {
        self =
            switch (reply.status, reply.signal) {
            case (_, let signal?): .killed(signal: Int32(clamping: signal))
            case (let status?, nil): .exited(status: Int32(clamping: status))
            case (nil, nil): .unseen
            }
    }
}

extension LauncherAPI.Wake.Parameters {
    fileprivate init(_ order: WakeOrder) {
        self.init(
            connection: order.connection, owner: Int(order.owner), means: order.attempt.means.rawValue,
            wake: Int(clamping: order.attempt.wake), attempt: order.attempt.attempt,
            reasons: order.attempt.reasons.map(\.rawValue),
            epoch: Int(clamping: order.epoch))
    }
}

extension LauncherAPI.Find.Parameters {
    fileprivate init(_ order: WakeOrder) {
        self.init(
            connection: order.connection, owner: Int(order.owner), wake: Int(clamping: order.attempt.wake),
            attempt: order.attempt.attempt)
    }
}
