// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneSession
internal import DialtoneSystemd
internal import Glibc

let usage = """
    Usage: dialtone-session [--config FILE] [--socket PATH] [--state DIRECTORY] [--log-level LEVEL] [--check-config]

    What Dialtone does for a logged-in user: push, one shared connection for all apps. It is a client of dialtoned, and
    serves apps on the session bus. SIGHUP reloads the configuration, SIGTERM ends it. `dialtone push` is its command
    line.

      --config FILE      the configuration file; else ~/.config/dialtone/session.toml
      --socket PATH      the socket to serve on, unless the service manager passes one; else
                         $XDG_RUNTIME_DIR/dialtone/session.sock
      --state DIRECTORY  where registrations and messages are kept; else $STATE_DIRECTORY, else
                         ~/.local/state/dialtone
      --check-config     check the configuration, say what is wrong with it, and end
      --log-level LEVEL  the minimum log level: trace, debug, info, notice (the default), warning, error, critical
      --version          show the version
      --help, -h         show this

    Exit status as in sysexits.h: 0 after SIGTERM, 64 bad usage, 69 another one serves the socket, 71 the system
    refuses, 73 the socket or the state cannot be made, 75 another process has the state or the disk is full, 78 the
    configuration is wrong.
    """

let (options, isCheck) = ProgramOptions.read(
    usage: usage, valued: ["config", "socket", "state", "log-level"], flags: ["check-config"]
) { options throws(ProgramOptions.Mistake) in
    let parsed = SessionOptions(
        configuration: options["config"], socket: options["socket"], state: options["state"],
        logLevel: try options.logLevel())
    return (parsed, options.has("check-config"))
}
if isCheck { exit(SessionProcess.checkConfiguration(options)) }
SessionProcess.run(options)
