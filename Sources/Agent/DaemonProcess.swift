// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConfiguration
internal import DialtonePersistence
internal import DialtonePlatform
internal import DialtonePrivilegedLauncher
internal import DialtoneProcesses
internal import DialtoneSystemd
internal import DialtoneVarlink
internal import Dispatch
internal import Glibc
package import Logging
internal import Reachability

/// What the command line of the daemon says.
package struct DaemonOptions: Sendable {
    /// The main configuration file in place of the standard one.
    package var configuration: String?
    /// The socket in place of the standard one.
    package var socket: String?
    /// The state directory in place of the standard one.
    package var state: String?
    /// Where to record what the kernel says.
    package var recording: String?
    /// The minimum log level.
    package var logLevel: Logger.Level

    /// What the command line says.
    package init(
        configuration: String? = nil, socket: String? = nil, state: String? = nil, recording: String? = nil,
        logLevel: Logger.Level = .notice
    ) {
        self.configuration = configuration
        self.socket = socket
        self.state = state
        self.recording = recording
        self.logLevel = logLevel
    }
}

/// Starts the daemon, keeps its configuration current and ends it.
package enum DaemonProcess {
    /// The signals that the daemon answers itself: the end by the service manager or a terminal, and a reload.
    fileprivate static let signals = [SIGTERM, SIGINT, SIGHUP]

    /// Checks the configuration and writes what is wrong with it.
    ///
    /// - Returns: the exit status: 0, or `EX_CONFIG`.
    package static func checkConfiguration(_ options: DaemonOptions) -> CInt {
        do throws(ConfigurationError) {
            let loaded = try load(options)
            for notice in loaded.notices { writeLine(notice.description, to: STDERR_FILENO) }
            let files = loaded.files.isEmpty ? "no file: the embedded default" : loaded.files.joined(separator: ", ")
            writeLine("The configuration is valid (\(files)).", to: STDOUT_FILENO)
            return EXIT_SUCCESS
        } catch {
            writeLine(error.description, to: STDERR_FILENO)
            return EX_CONFIG
        }
    }

    /// Runs the daemon; ends the process with an exit status of sysexits.h. To be called by `main`, before it starts a
    /// thread.
    package static func run(_ options: DaemonOptions) -> Never {
        ProcessMemory.forbidDumps()
        signal(SIGPIPE, SIG_IGN)
        SignalWatch.block(signals)
        // Each connection and each client is one.
        DescriptorLimit.raise()
        let logger = Logger(label: "dialtoned") { label in
            LogOutput.detect().handler(identifier: "dialtoned", label: label, level: options.logLevel)
        }
        let inheritance: Inheritance
        let crashes: CrashGuard
        do throws(SystemError) {
            // Before there is a second thread, since it changes the environment.
            inheritance = try Inheritance(.receive())
            crashes = try CrashGuard(inheritance.box, logger)
        } catch {
            writeLine("dialtoned: \(error)", to: STDERR_FILENO)
            exit(EX_OSERR)
        }
        crashes.pauseBeforeStart()
        let loaded: LoadedConfiguration
        do throws(ConfigurationError) {
            loaded = try load(options)
        } catch {
            writeLine(error.description, to: STDERR_FILENO)
            exit(EX_CONFIG)
        }
        for notice in loaded.notices { logger.notice("\(notice)") }
        AgentQueue.async {
            do throws(StartError) {
                Running.shared = try Running(options, loaded.configuration, inheritance, crashes, logger)
            } catch {
                writeLine("dialtoned: \(error.text)", to: STDERR_FILENO)
                exit(error.status)
            }
        }
        // Not dispatchMain(): it makes this thread take signals that are blocked everywhere else, with their default
        // action (libdispatch's _dispatch_sig_thread).
        while true { pause() }
    }

    static func load(_ options: DaemonOptions) throws(ConfigurationError) -> LoadedConfiguration {
        let files =
            options.configuration.map { ConfigurationFiles(main: $0) }
            ?? .standard(user: geteuid()) { getenv($0).map { String(cString: $0) } }
        var checks = ConfigurationChecks()
        // Also with a file of another place: the launcher serves no other daemon.
        checks.isMachineService =
            geteuid() != 0 && (files.areTheMachines || access(LauncherClient.standardPath, W_OK) == 0)
        return try BlackBox.noteConfiguration { () throws(ConfigurationError) in
            try Configuration.load(files, checks)
        }
    }

}

/// Why the daemon does not start.
struct StartError: Error {
    let text: String
    let status: CInt
}

/// The daemon at work, with what keeps it so.
@AgentQueue
private final class Running {
    /// Keeps it alive until the process ends.
    static var shared: Running?

    /// Where files are read. Serial: of two reloads, the later one has the last word.
    private static let loader = DispatchQueue(label: "org.dialtone.configuration")

    private let options: DaemonOptions
    private let agent: Agent
    private let engine: NetworkState
    private let logger: Logger
    private var signalWatch: SignalWatch?
    private var watchdog: Watchdog?
    private var isEnding = false

    init(
        _ options: DaemonOptions, _ configuration: Configuration, _ inheritance: Inheritance, _ crashes: CrashGuard,
        _ logger: Logger
    ) throws(StartError) {
        self.options = options
        self.logger = logger
        // The first snapshot of the network is in when the engine is made.
        engine = try Self.engine(recordingTo: options.recording, logger)
        // Before what the process before left is read.
        let memory = MemoryLimits()
        agent = Agent(
            configuration, engine: engine, state: SavedState(logger, in: options.state ?? SavedState.standardPath),
            continuity: Self.continuity(inheritance, crashes, logger), crashes: crashes, memory: memory,
            relayPath: Self.relayPath(options, inheritance.listeners), logger: logger)
        do throws(SystemError) {
            signalWatch = try SignalWatch(DaemonProcess.signals) { [weak self] in self?.take($0) }
        } catch {
            throw StartError(text: "\(error)", status: EX_OSERR)
        }
        try listen(on: inheritance.listeners)
        agent.apply(configuration, defaultOwner: geteuid())
        // Not earlier: who waits for this may connect at once, and gets the network's path, not a guess.
        ServiceManager.tell(logger) { () throws(SystemError) in try ServiceManager.notifyReady(status: Self.status) }
        ResidentMemory.release()
        watchdog = Watchdog.begin(logger)
    }

    /// Beside the agent's own socket.
    private static func relayPath(_ options: DaemonOptions, _ listeners: [CInt]) -> String? {
        let own =
            listeners.first.flatMap { UnixSocket.path(of: $0) } ?? options.socket
            ?? SocketPath.ofDaemon(uid: geteuid(), environment: processEnvironment())
        return own.flatMap { path in
            path.lastIndex(of: "/").map { path[...$0] + RelayConnector.socketName }
        }
    }

    private static func continuity(
        _ inheritance: Inheritance, _ crashes: CrashGuard, _ logger: Logger
    ) -> Continuity? {
        let limit = ServiceManager.storeLimit
        guard limit > 0 else {
            logger.notice(
                "this agent runs by itself, and its connections end with it: under a service manager they outlive it")
            return nil
        }
        do throws(SystemError) {
            return try Continuity(inheritance, limit: limit, after: crashes, logger)
        } catch {
            logger.warning("connections end with this process", metadata: ["error": "\(error)"])
            return nil
        }
    }

    private static func engine(recordingTo path: String?, _ logger: Logger) throws(StartError) -> NetworkState {
        guard let path else { return .shared }
        do throws(SystemError) {
            let engine = try NetworkState(recordingTo: path, program: "dialtoned \(Product.version)") { reason in
                logger.error("recording stopped", metadata: ["file": "\(path)", "reason": "\(reason)"])
            }
            logger.notice("recording", metadata: ["file": "\(path)"])
            return engine
        } catch {
            throw StartError(text: "\(error)", status: EX_CANTCREAT)
        }
    }

    /// What `systemctl status` shows; a number of connections would be wrong with the next one.
    private static let status = "Serving"

    private func listen(on sockets: [CInt]) throws(StartError) {
        do throws(SystemError) {
            for socket in sockets { try agent.listen(on: OwnedDescriptor(socket)) }
            if !sockets.isEmpty { return }
        } catch {
            throw StartError(text: "\(error)", status: EX_OSERR)
        }
        let environment = processEnvironment()
        guard let path = options.socket ?? SocketPath.ofDaemon(uid: geteuid(), environment: environment) else {
            throw StartError(
                text: "there is no place for the socket: XDG_RUNTIME_DIR is not set. Name one with --socket PATH.",
                status: EX_USAGE)
        }
        do throws(SystemError) {
            // Only the standard place is made; the directory of a path that somebody names is theirs to make.
            if options.socket == nil { try SocketDirectory.make(for: path) }
        } catch {
            throw StartError(text: "\(error)", status: EX_CANTCREAT)
        }
        do throws(VarlinkSocketError) {
            try agent.listen(at: path, .standard)
        } catch {
            throw StartError(text: "\(error)", status: error.exitStatus)
        }
    }

    private func take(_ signal: CInt) {
        // Ctrl-C comes from the terminal, and once more from the script that started it.
        if isEnding { return }
        if signal == SIGHUP { return reload() }
        isEnding = true
        logger.notice("ending", metadata: ["signal": "\(signal)"])
        ServiceManager.tell(logger) { () throws(SystemError) in try ServiceManager.notifyStopping() }
        agent.stop { [engine] in
            engine.endRecording()
            exit(EXIT_SUCCESS)
        }
    }

    /// Reads the configuration anew, away from the queue: the file system and the user database may block.
    private func reload() {
        ServiceManager.tell(self.logger) { () throws(SystemError) in try ServiceManager.notifyReloading() }
        let (options, logger) = (options, logger)
        Self.loader.async {
            let result = Result<LoadedConfiguration, ConfigurationError> { () throws(ConfigurationError) in
                try DaemonProcess.load(options)
            }
            AgentQueue.async { Running.shared?.finishReload(result, logger) }
        }
    }

    private func finishReload(_ result: Result<LoadedConfiguration, ConfigurationError>, _ logger: Logger) {
        switch result {
        case .success(let loaded):
            for notice in loaded.notices { logger.notice("\(notice)") }
            agent.apply(loaded.configuration, defaultOwner: geteuid())
            logger.notice("configuration reloaded", metadata: ["files": "\(loaded.files.joined(separator: " "))"])
        case .failure(let error):
            for issue in error.issues { logger.error("\(issue)") }
            logger.error("the configuration was not reloaded; the old one stays")
        }
        ServiceManager.tell(logger) { () throws(SystemError) in try ServiceManager.notifyReady(status: Self.status) }
    }
}

extension VarlinkSocketError {
    /// The exit status that says what kind of mistake it is.
    fileprivate var exitStatus: CInt {
        switch self {
        case .inUse: EX_UNAVAILABLE
        case .notASocket, .system: EX_CANTCREAT
        }
    }
}
