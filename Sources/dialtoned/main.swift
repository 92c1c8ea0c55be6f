// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAgent
internal import DialtonePlatform
internal import DialtoneSystemd
internal import Glibc

let usage = """
    Usage: dialtoned [--config FILE] [--socket PATH] [--state DIRECTORY] [--record FILE]
                     [--log-level LEVEL] [--check-config]

    The network reachability and reconnection agent. It watches the kernel's network, supervises signaling connections,
    and tells subscribers on a Unix socket. SIGHUP reloads the configuration, SIGTERM ends it. `dialtone` is its command
    line.

      --config FILE      the configuration file; else /etc/dialtone/dialtone.toml, for users
                         ~/.config/dialtone/dialtone.toml
      --socket PATH      the socket to serve on, unless the service manager passes one
      --state DIRECTORY  where the history and what is learned of keepalives are kept; else $STATE_DIRECTORY, as root
                         /var/lib/dialtone, for users ~/.local/state/dialtone
      --record FILE      record what the kernel says of the network, for `dialtone replay` and Wireshark; it holds
                         addresses and the names of watched hosts; a file that is there is kept as FILE.old
      --check-config     check the configuration, say what is wrong with it, and end
      --log-level LEVEL  the minimum log level: trace, debug, info, notice (the default), warning, error, critical
      --version          show the version
      --help, -h         show this

    Exit status as in sysexits.h: 0 after SIGTERM, 64 bad usage, 69 another agent serves the socket, 71 the system
    refuses, 73 the socket cannot be made, 78 the configuration is wrong.
    """

let (options, isCheck) = ProgramOptions.read(
    usage: usage, valued: ["config", "socket", "state", "record", "log-level"], flags: ["check-config"]
) { options throws(ProgramOptions.Mistake) in
    let parsed = DaemonOptions(
        configuration: options["config"], socket: options["socket"], state: options["state"],
        recording: options["record"],
        logLevel: try options.logLevel())
    return (parsed, options.has("check-config"))
}
if isCheck { exit(DaemonProcess.checkConfiguration(options)) }
DaemonProcess.run(options)
