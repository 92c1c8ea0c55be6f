// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DialtoneConfiguration
internal import DialtoneConnection
internal import DialtonePlatform
internal import DialtonePrivilegedLauncher
internal import DialtoneProcesses
internal import DialtoneVarlink
internal import Glibc

/// What it takes to wake clients, shared by all connections.
@AgentQueue
final class WakeContext {
    private let activator: Activator
    private let launcher: LauncherClient?
    /// How long a client that was woken may have the flow.
    var budget = ClientHandler.budget
    /// Where the agent serves, for programs that are launched.
    var socketPath = ""
    /// The rules that were made, by the signal in them: in nothing else do they differ.
    private var standardRules: [CInt?: Wakes.Settings] = [:]
    /// Whether somebody watches a connection who may be its client, which is this process where it is known.
    var isWatched: @AgentQueue (RegisteredConnection, ProcessHandle?) -> Bool = { _, _ in false }

    /// - Parameter launcher: who wakes clients where this process may not; `nil` for root, who may.
    init(_ activator: Activator = Activator(), launcher: LauncherClient? = geteuid() == 0 ? nil : LauncherClient()) {
        self.activator = activator
        self.launcher = launcher
    }

    /// By what the clients of `owner` are woken where no file says it: by an event, and one that is stopped is
    /// continued where this process may do that without anybody's help.
    func settings(for owner: UInt32) -> WakeSettings {
        var settings = WakeSettings()
        if geteuid() == 0 || geteuid() == owner { settings.signal = SIGCONT }
        return settings
    }

    /// How the clients of `owner` are woken where no file says it. Made once, and shared: that is most connections.
    func rules(for owner: UInt32) -> Wakes.Settings {
        let settings = settings(for: owner)
        if let made = standardRules[settings.signal], made.budget == budget { return made }
        let rules = settings.rules(isTended: false, budget: budget)
        standardRules[settings.signal] = rules
        return rules
    }

    /// Attempts to wake a client, as ``Activator`` does: by the launcher where there is one and it takes its rights. Of
    /// a program that the launcher launches, there is no process to be known before it runs.
    func perform(
        _ order: WakeOrder, process: ProcessHandle?, socket: CInt?,
        began: @escaping @AgentQueue (ProcessHandle) -> Void = { _ in },
        ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void
    ) {
        if activator.lacksRights(for: order), let launcher, launcher.isThere {
            launcher.perform(order, process: process, socket: socket, ended: ended, completion)
        } else {
            activator.perform(order, process: process, socket: socket, began: began, ended: ended, completion)
        }
    }

    /// Finds the program of an attempt that an earlier process of the agent made, and did not hear of. A child of its
    /// own became no program before that was written down.
    func find(
        _ order: WakeOrder, ended: @escaping @AgentQueue (ProgramEnd) -> Void,
        _ completion: @escaping @AgentQueue (Activator.Outcome) -> Void
    ) {
        if activator.lacksRights(for: order), let launcher, launcher.isThere {
            launcher.find(order, ended: ended, completion)
        } else {
            completion(.failed("no program was launched"))
        }
    }

    /// Tells of the end of a program that an earlier process of the agent launched: how it ended where the launcher did
    /// that for it, whose child it is.
    func follow(_ process: ProcessHandle, ended: @escaping @AgentQueue (ProgramEnd) -> Void) {
        if let launcher, launcher.isThere {
            launcher.follow(process, ended: ended)
        } else {
            process.awaitUnseenEnd(ended)
        }
    }

    /// The agent serves on this socket, which somebody else made.
    func serves(on socket: borrowing OwnedDescriptor) {
        if let path = UnixSocket.path(of: socket.number) { socketPath = path }
    }
}
