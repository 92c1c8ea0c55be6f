// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtonePrivilegedLauncher
internal import DialtoneSystemd

let usage = """
    Usage: dialtone-launcher [--config FILE] [--socket PATH] [--log-level LEVEL]

    Wakes clients for dialtoned, which runs as a user who may not: it has the service manager run the programs and start
    the units, and signals and thaws the processes, that root's own configuration names. dialtone-launcher.socket starts
    it for a wake; it ends when there is nothing more to do.

      --config FILE      the configuration file; else /etc/dialtone/dialtone.toml
      --socket PATH      the daemon's socket
      --log-level LEVEL  the least that is logged: trace, debug, info, notice (the default), warning, error, critical
      --version          show the version
      --help, -h         show this
    """

// What the launcher has systemd begin a program with, which is to begin soon: no options are read then.
if CommandLine.arguments.dropFirst().first == "--pass-socket" {
    LauncherProcess.passSocket(to: Array(CommandLine.arguments.dropFirst(2)))
}
let (configuration, socket, logLevel) = ProgramOptions.read(
    usage: usage, valued: ["config", "socket", "log-level"]
) { options throws(ProgramOptions.Mistake) in (options["config"], options["socket"], try options.logLevel()) }
LauncherProcess.run(configuration: configuration, socket: socket, logLevel: logLevel)
