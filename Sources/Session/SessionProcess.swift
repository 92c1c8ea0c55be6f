// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConfiguration
internal import DialtonePlatform
internal import DialtonePushAPI
internal import DialtoneSystemd
internal import DialtoneVarlink
internal import Dispatch
internal import Glibc
package import Logging

/// What the command line of the session agent says.
package struct SessionOptions: Sendable {
    /// The configuration file in place of the standard one.
    package var configuration: String?
    /// The socket in place of the standard one.
    package var socket: String?
    /// The state directory in place of the standard one.
    package var state: String?
    /// The minimum log level.
    package var logLevel: Logger.Level

    /// What the command line says.
    package init(configuration: String?, socket: String?, state: String?, logLevel: Logger.Level) {
        self.configuration = configuration
        self.socket = socket
        self.state = state
        self.logLevel = logLevel
    }
}

/// Starts the session agent, keeps its configuration current and ends it.
package enum SessionProcess {
    /// The signals that it answers itself: the end by the service manager or a terminal, and a reload.
    fileprivate static let signals = [SIGTERM, SIGINT, SIGHUP]

    /// Checks the configuration and writes what is wrong with it.
    ///
    /// - Returns: the exit status: 0, or `EX_CONFIG`.
    package static func checkConfiguration(_ options: SessionOptions) -> CInt {
        do throws(ConfigurationError) {
            let configuration = try load(options)
            let push = configuration.push.map { "push by \($0.server)" } ?? "no push"
            let notifications = configuration.notifications.isEmpty ? ", no notifications" : ""
            writeLine("The configuration is valid (\(push)\(notifications)).", to: STDOUT_FILENO)
            return EXIT_SUCCESS
        } catch {
            writeLine(error.description, to: STDERR_FILENO)
            return EX_CONFIG
        }
    }

    /// Runs the session agent; ends the process with an exit status of sysexits.h. To be called by `main`, before it
    /// starts a thread.
    package static func run(_ options: SessionOptions) -> Never {
        // The password of an account, and the messages of apps.
        ProcessMemory.forbidDumps()
        signal(SIGPIPE, SIG_IGN)
        SignalWatch.block(signals)
        let logger = Logger(label: "dialtone-session") { label in
            LogOutput.detect().handler(identifier: "dialtone-session", label: label, level: options.logLevel)
        }
        var sockets: [CInt] = []
        do throws(SystemError) {
            // Before there is a second thread, since it changes the environment.
            var passed = try PassedDescriptors.receive()
            while let socket = try passed.takeUnixListener(named: "session") { sockets.append(socket.release()) }
        } catch {
            end("\(error)", EX_OSERR)
        }
        let configuration: SessionConfiguration
        do throws(ConfigurationError) {
            configuration = try load(options)
        } catch {
            writeLine(error.description, to: STDERR_FILENO)
            exit(EX_CONFIG)
        }
        let listeners = sockets
        AgentQueue.async {
            guard let push = push(options, logger) else { return }
            Running.shared = Running(options, configuration, listeners, push, logger)
        }
        // Not dispatchMain(), as in dialtoned.
        while true { pause() }
    }

    /// Push, with what it kept. Where that cannot be had just now, it is `nil`, and the process ends soon: so late that
    /// the service manager, which starts it again, does not do so all the time.
    @AgentQueue
    private static func push(_ options: SessionOptions, _ logger: Logger) -> PushService? {
        let standard = StatePath.standard(user: geteuid()) { getenv($0).map { String(cString: $0) } }
        guard let state = options.state ?? standard else {
            end("there is no place for what it keeps: neither STATE_DIRECTORY nor HOME is set", EX_USAGE)
        }
        do throws(PushServiceError) {
            return try PushService(in: state, logger)
        } catch {
            guard error.mayPass else { end("\(error)", EX_CANTCREAT) }
            logger.error("what was kept cannot be read just now", metadata: ["error": "\(error)"])
            _ = Timers.shared.schedule(after: .seconds(10)) { end("\(error)", EX_TEMPFAIL) }
            return nil
        }
    }

    fileprivate static func load(_ options: SessionOptions) throws(ConfigurationError) -> SessionConfiguration {
        let standard = SessionConfiguration.standardFile(user: geteuid()) { getenv($0).map { String(cString: $0) } }
        guard let file = options.configuration ?? standard else { return SessionConfiguration() }
        return try SessionConfiguration.load(file, mayBeMissing: options.configuration == nil)
    }

    fileprivate static func end(_ text: String, _ status: CInt) -> Never {
        writeLine("dialtone-session: \(text)", to: STDERR_FILENO)
        exit(status)
    }
}

/// The session agent at work.
@AgentQueue
private final class Running {
    /// Keeps it alive until the process ends.
    static var shared: Running?

    /// Where files are read. Serial: of two reloads, the later one has the last word.
    private static let loader = DispatchQueue(label: "org.dialtone.configuration")

    private let options: SessionOptions
    private let logger: Logger
    private let push: PushService
    private let notifications: NotificationService
    private let server: VarlinkServer
    private var signalWatch: SignalWatch?
    private var watchdog: Watchdog?

    init(
        _ options: SessionOptions, _ configuration: SessionConfiguration, _ listeners: [CInt], _ push: PushService,
        _ logger: Logger
    ) {
        (self.options, self.push, self.logger) = (options, push, logger)
        notifications = NotificationService(logger)
        let service = VarlinkService(
            vendor: "Dialtone", product: "dialtone-session", version: Product.version, url: Product.homepage)
        push.register(in: service)
        notifications.register(in: service)
        // It serves one user, and root.
        var limits = VarlinkServer.Limits()
        limits.connections = 64
        limits.privileged = [0, geteuid()]
        server = VarlinkServer(service, limits: limits)
        service.handleLater(PushAPI.Reload.self) { [unowned self] _, exchange in
            reload { error in
                guard let error else { return exchange.reply(VarlinkEmpty()) }
                exchange.fail(VarlinkFailure(PushAPI.InvalidConfiguration(reason: "\(error)")))
            }
        }
        do throws(SystemError) {
            signalWatch = try SignalWatch(SessionProcess.signals) { [weak self] in self?.take($0) }
        } catch {
            SessionProcess.end("\(error)", EX_OSERR)
        }
        listen(on: listeners)
        push.onReport = { [notifications] in notifications.hear($0) }
        apply(configuration)
        ServiceManager.tell(logger) { () throws(SystemError) in try ServiceManager.notifyReady() }
        ResidentMemory.release()
        watchdog = Watchdog.begin(logger)
    }

    private func apply(_ configuration: SessionConfiguration) {
        push.apply(configuration.push)
        notifications.apply(configuration.notifications, pushServer: configuration.push?.name)
    }

    private func listen(on listeners: [CInt]) {
        do throws(SystemError) {
            for socket in listeners { try server.listen(on: OwnedDescriptor(socket)) }
            if !listeners.isEmpty { return }
        } catch {
            SessionProcess.end("\(error)", EX_OSERR)
        }
        guard let path = options.socket ?? SessionSocket.path({ getenv($0).map { String(cString: $0) } }) else {
            SessionProcess.end(
                "there is no place for the socket: XDG_RUNTIME_DIR is not set. Name one with --socket PATH.", EX_USAGE)
        }
        // Only the standard place is made; the directory of a path that somebody names is theirs to make.
        if options.socket == nil, let slash = path.lastIndex(of: "/") { mkdir(String(path[..<slash]), 0o700) }
        do throws(VarlinkSocketError) {
            try server.listen(at: path, mode: 0o600)
        } catch {
            switch error {
            case .inUse: SessionProcess.end("\(error)", EX_UNAVAILABLE)
            case .notASocket, .system: SessionProcess.end("\(error)", EX_CANTCREAT)
            }
        }
    }

    private func take(_ signal: CInt) {
        guard signal == SIGHUP else {
            ServiceManager.tell(logger) { () throws(SystemError) in try ServiceManager.notifyStopping() }
            // What came is on disk, and the sockets are at the machine's agent.
            server.close()
            exit(EXIT_SUCCESS)
        }
        reload { _ in }
    }

    /// Reads the configuration anew, away from the queue: the file system may block.
    private func reload(_ completion: @escaping @Sendable @AgentQueue (ConfigurationError?) -> Void) {
        ServiceManager.tell(logger) { () throws(SystemError) in try ServiceManager.notifyReloading() }
        let options = options
        Self.loader.async {
            let result = Result<SessionConfiguration, ConfigurationError> { () throws(ConfigurationError) in
                try SessionProcess.load(options)
            }
            AgentQueue.async {
                Running.shared?.finishReload(result)
                if case .failure(let error) = result { completion(error) } else { completion(nil) }
            }
        }
    }

    private func finishReload(_ result: Result<SessionConfiguration, ConfigurationError>) {
        switch result {
        case .success(let configuration):
            apply(configuration)
            logger.notice("configuration reloaded")
        case .failure(let error):
            for issue in error.issues { logger.error("\(issue)") }
            logger.error("the configuration was not reloaded; the old one stays")
        }
        ServiceManager.tell(logger) { () throws(SystemError) in try ServiceManager.notifyReady() }
    }
}
