// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneProcesses
internal import DialtoneConnection
package import DialtonePlatform
internal import DialtoneSystemd
internal import Glibc

/// Launches programs as units of the service manager, so that the process that has it done needs no right to become
/// their owner, and what confines it does not confine them.
@AgentQueue
final class UnitLauncher {
    private let programs: UnitPrograms
    /// The program that passes a socket on as descriptor 3: systemd itself can since version 254 alone.
    private let passer: String

    init(bus: String?, passer: String) {
        programs = UnitPrograms(address: bus)
        self.passer = passer
    }

    /// Launches a program, as ``LaunchedProgram`` does.
    func launch(
        _ request: ProgramRequest, socket: CInt?, ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void
    ) {
        let user = request.identity.user
        // Its reads wait, in this process as well: the flag is the socket's.
        let flags = UserThreads.answer(for: user, otherwise: CInt(-1)) {
            let flags = socket.map { fcntl($0, F_GETFL) } ?? -1
            if let socket, flags >= 0 { _ = fcntl(socket, F_SETFL, flags & ~O_NONBLOCK) }
            return flags
        }
        let program = program(request, hasSocket: socket != nil)
        var process: ProcessHandle?
        programs.start(program, socket: socket) { result in
            switch result {
            case .success(let start):
                let outcome = Self.outcome(start, program.name)
                if case .launched(let launched) = outcome { process = launched }
                completion(outcome)
            case .failure(let failure):
                // Still the caller's, who keeps it.
                if let socket, flags >= 0 {
                    _ = UserThreads.answer(for: user, otherwise: CInt(-1)) { fcntl(socket, F_SETFL, flags) }
                }
                completion(.failed("running \(request.command.first ?? ""): \(failure.text)"))
            }
        } ended: { end in
            guard end == .unseen, let process else { return ended(ProgramEnd(end)) }
            // The bus has gone, and the program may go on.
            process.awaitUnseenEnd(ended)
        }
    }

    private func program(_ request: ProgramRequest, hasSocket: Bool) -> UnitProgram {
        let passes = hasSocket && request.streams == .passed
        // A name that no unit has had since the machine started.
        let name = String(request.connection.map { $0 == "@" ? "_" : $0 })
        return UnitProgram(
            name: "dialtone-\(name)-\(UInt64(BootClock.now() / .microseconds(1)))",
            description: "Program of the Dialtone connection \(request.connection)",
            command: passes ? [passer, "--pass-socket"] + request.command : request.command,
            user: request.identity.user, directory: request.identity.home,
            environment: request.environment(withSocket: hasSocket),
            identifier: "dialtone-\(request.connection)", writesToSocket: request.streams == .standard,
            startLimit: LaunchedProgram.startLimit)
    }

    private static func outcome(_ start: UnitPrograms.Start, _ unit: String) -> Activator.Outcome {
        do throws(SystemError) {
            // That it is in the unit's group shows, once it is held by a descriptor, that the number was still its own.
            if !start.isOver, let process = try? ProcessHandle(start.process),
                FileContent.text(of: "/proc/\(start.process)/cgroup")?.split(whereSeparator: { $0 == "/" || $0 == "\n" }
                )
                .contains(where: { $0 == "\(unit).service" }) == true,
                process.isAlive
            {
                return .launched(process)
            }
            // It has ended already, and its number may be another's.
            return .launched(try ProcessHandle.ended(start.process))
        } catch {
            return .failed("\(error)")
        }
    }
}

extension ProgramEnd {
    fileprivate init(_ end: UnitProgram.End) {
        self =
            switch end {
            case .exited(let status): .exited(status: status)
            case .killed(let signal): .killed(signal: signal)
            case .unseen: .unseen
            }
    }
}

/// The step between the service manager and a program that finds its socket as descriptor 3.
package enum SocketPassing {
    /// Becomes a program, with the socket that is this process's standard input as its descriptor 3 (sd_listen_fds(3)),
    /// and nothing to read.
    ///
    /// - Returns: only where it cannot, with the kernel's word.
    package static func exec(_ command: [String]) -> SystemError {
        var arguments = command.map { strdup($0) }
        arguments.append(nil)
        guard let path = command.first else { return SystemError("passing a socket to no program", code: EINVAL) }
        _ = activation_pass_socket(path, &arguments)
        return .last("running \(path)")
    }
}
