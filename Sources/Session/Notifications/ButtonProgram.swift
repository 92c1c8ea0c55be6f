// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNotifications
internal import DialtonePlatform
internal import DialtoneProcesses
internal import Dispatch
internal import Glibc
internal import Logging

/// Runs what the user's configuration has a button run: as the user, without a shell.
enum ButtonProgram {
    /// Where the user is looked up, which may ask the network.
    private static let lookUps = DispatchQueue(label: "org.dialtone.button")

    /// Starts the program. What becomes of it is in the log.
    ///
    /// - Parameter subject: what the notification is about, which the program finds in its environment.
    @AgentQueue
    static func run(_ command: [String], _ subject: NoticeSubject, _ logger: Logger) {
        lookUps.async {
            let identity = ProgramIdentity.lookUp(geteuid())
            AgentQueue.async {
                guard let identity else {
                    return logger.warning("a button's program was not run: the system does not know this user")
                }
                start(command, subject, identity, logger)
            }
        }
    }

    @AgentQueue
    private static func start(
        _ command: [String], _ subject: NoticeSubject, _ identity: ProgramIdentity, _ logger: Logger
    ) {
        let request = ProgramRequest(
            command: command, identity: identity, streams: .passed, connection: subject.name,
            variables: ["DIALTONE_EVENT": subject.event.rawValue, "DIALTONE_NAME": subject.name])
        let fields: Logger.Metadata = ["program": "\(command[0])", "name": "\(subject.name)"]
        do throws(SystemError) {
            // It keeps itself until the program has ended.
            _ = try LaunchedProgram(request, socket: nil, output: STDERR_FILENO) { failure in
                guard let failure else { return logger.notice("a button's program runs", metadata: fields) }
                logger.warning(
                    "a button's program was not run", metadata: fields.merging(["error": "\(failure)"]) { $1 })
            } ended: { end in
                logger.info("a button's program ended", metadata: fields.merging(["end": "\(end)"]) { $1 })
            }
        } catch {
            logger.warning("a button's program was not run", metadata: fields.merging(["error": "\(error)"]) { $1 })
        }
    }
}
