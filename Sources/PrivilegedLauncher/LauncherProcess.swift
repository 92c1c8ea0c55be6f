// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtonePlatform
internal import DialtoneProcesses
internal import DialtoneSystemd
internal import DialtoneVarlink
internal import Glibc
package import Logging

/// `dialtone-launcher.service`: root's process that wakes clients for a daemon that is not root. It is started for a
/// wake, and ends when there is nothing more to do.
package enum LauncherProcess {
    /// Runs the launcher; ends the process with an exit status of sysexits.h. To be called by `main`, before it starts
    /// a thread.
    ///
    /// - Parameters:
    ///   - configuration: the main configuration file in place of the standard one.
    ///   - socket: the daemon's socket in place of the standard one.
    ///   - logLevel: the minimum log level.
    package static func run(configuration: String?, socket: String?, logLevel: Logger.Level) -> Never {
        // Root's files hold the passwords of connections.
        ProcessMemory.forbidDumps()
        signal(SIGPIPE, SIG_IGN)
        let logger = Logger(label: "launcher") { label in
            LogOutput.detect().handler(identifier: "dialtone-launcher", label: label, level: logLevel)
        }
        let sockets: [CInt]
        do throws(SystemError) {
            sockets = try passedSockets()
        } catch {
            end("\(error)", EX_OSERR)
        }
        guard !sockets.isEmpty else { end("it is started by dialtone-launcher.socket, for dialtoned", EX_USAGE) }
        let files =
            configuration.map { ConfigurationFiles(main: $0) }
            ?? .standard(user: 0) { getenv($0).map { String(cString: $0) } }
        let daemon = socket ?? SocketPath.system
        AgentQueue.async { Serving.shared = Serving(files, sockets, daemon, logger) }
        while true { pause() }
    }

    /// Becomes a program that finds a socket, which is this process's standard input, as its descriptor 3. The launcher
    /// has systemd begin programs with it.
    package static func passSocket(to command: [String]) -> Never {
        end("\(SocketPassing.exec(command))", EX_UNAVAILABLE)
    }

    private static func passedSockets() throws(SystemError) -> [CInt] {
        var passed = try PassedDescriptors.receive()
        var sockets: [CInt] = []
        while let socket = try passed.takeUnixListener(named: "launcher") { sockets.append(socket.release()) }
        return sockets
    }

    fileprivate static func end(_ text: String, _ status: CInt) -> Never {
        writeLine("dialtone-launcher: \(text)", to: STDERR_FILENO)
        exit(status)
    }
}

/// The launcher at work.
@AgentQueue
private final class Serving {
    /// Keeps it alive until the process ends.
    static var shared: Serving?

    /// This program, which passes sockets to units; `nil` where no systemd runs the machine (sd_booted(3)), and
    /// programs are children of this process.
    private static var passer: String? {
        guard access("/run/systemd/system", F_OK) == 0 else { return nil }
        return OwnProgram.path
    }

    private let launcher: Launcher
    private let server: VarlinkServer

    init(_ files: ConfigurationFiles, _ sockets: [CInt], _ daemon: String, _ logger: Logger) {
        launcher = Launcher(Activator(programsAsUnitsBy: Self.passer), socketPath: daemon, logger) {
            user throws(ConfigurationError) in
            if let (directory, text) = RootsPath.obstacle(to: files.main) {
                throw ConfigurationError(issues: [ConfigurationIssue(directory, message: text)])
            }
            var checks = ConfigurationChecks()
            (checks.daemonUser, checks.isMachineService) = (user, user != 0)
            return try Configuration.load(files, checks).configuration
        } onIdle: {
            exit(EXIT_SUCCESS)
        }
        let service = VarlinkService(
            vendor: "Dialtone", product: "dialtone-launcher", version: Product.version, url: Product.homepage)
        launcher.register(in: service)
        server = VarlinkServer(service)
        do throws(SystemError) {
            for socket in sockets { try server.listen(on: OwnedDescriptor(socket)) }
        } catch {
            LauncherProcess.end("\(error)", EX_OSERR)
        }
    }
}
