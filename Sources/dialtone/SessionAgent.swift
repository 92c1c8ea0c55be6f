// SPDX-License-Identifier: Apache-2.0

internal import DialtoneClient
internal import DialtonePushAPI
internal import Glibc

/// The session agent, dialtone-session, which the commands for pushes and notifications ask.
enum SessionAgent {
    /// The session agent of the user.
    static var client: DialtoneClient { DialtoneClient(path: path) }

    /// Where it listens. A command of cron(8) or sudo(8) has no `XDG_RUNTIME_DIR`; logind's place for the user is taken
    /// then (pam_systemd(8)).
    private static var path: String {
        SessionSocket.path { Output.environment[$0] } ?? "/run/user/\(geteuid())/dialtone/session.sock"
    }

    /// What to say of an error of a call of the session agent; `nil` where the error's own words, which are of the
    /// machine's agent, say it.
    static func words(for error: DialtoneError) -> String? {
        let path = path
        return switch error {
        case .notRunning([path]):
            """
            The session agent is not running: nothing listens on \(path). Start it with \
            "systemctl --user start dialtone-session.socket"; \(SessionSocket.variable) names another socket.
            """
        case .accessDenied(path):
            "The session agent's socket \(path) is not open to this user: it is another user's."
        case .busy(path):
            """
            The session agent at \(path) does not accept clients. See what it is doing with \
            "systemctl --user status dialtone-session".
            """
        case .interrupted(let method, let error) where isAsked(method):
            """
            The session agent did not answer \(method): \(error). See why with \
            "journalctl --user -u dialtone-session".
            """
        case .timedOut(let method, let limit) where isAsked(method):
            """
            The session agent did not answer \(method) within \(limit). See what it is doing with \
            "systemctl --user status dialtone-session".
            """
        default: nil
        }
    }

    /// Whether it is the session agent that has this method.
    private static func isAsked(_ method: String) -> Bool {
        [PushAPI.name, NotificationsAPI.name].contains { method.hasPrefix("\($0).") }
    }
}
