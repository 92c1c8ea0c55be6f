// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneTLSRelay
internal import Glibc

// No parser of command lines: what is not here need not be read to trust it.

let usage = """
    Usage: dialtone-tls

    Does TLS for dialtoned, and has the keys. It is given connected sockets and opened files, and makes and opens none
    itself. dialtone-tls.socket starts it with the first flow that has TLS; it ends half a minute after the last.
    Stopped or restarted, it goes on with the flows that it has, and new ones go to the next process.
    """

RelayProcess.run(CommandLine.arguments)
switch CommandLine.arguments[1] {
case "--version": writeLine(Product.version, to: STDOUT_FILENO)
case "--help", "-h": writeLine(usage, to: STDOUT_FILENO)
case let argument:
    writeLine("dialtone-tls: it takes no \"\(argument)\"\n\(usage)", to: STDERR_FILENO)
    exit(EX_USAGE)
}
