// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import DialtonePlatform
internal import DialtoneRelayMessages
internal import DialtoneTLS
internal import Glibc

/// `dialtone-tls`: does TLS for the agent, which has no keys and outlives this process as this one outlives the agent.
///
/// It is two processes. The first one has the listening socket from the service manager, and starts the second, which
/// serves. When the first is told to end, the second accepts no more and goes on with the flows that it has: the
/// service manager, which may start the program anew from then on, counts the first alone (`KillMode=process`). So a
/// restart, for an upgrade, ends no flow.
package enum RelayProcess {
    /// Where the second process has a pipe whose other end the first has. It is the agent's own child where there is
    /// none.
    private static let guarding: CInt = 4
    /// Behind the argument with which it serves: there is that pipe.
    private static let guarded = "guarded"

    /// Does what the command line says, if it says anything of this; else ends with the rest. To be called by `main`,
    /// before it starts a thread.
    package static func run(_ arguments: [String]) {
        switch arguments.dropFirst().first {
        case nil: standGuard()
        case RelayStart.serving?: serve(isGuarded: arguments.last == guarded)
        case .some: return
        }
    }

    // MARK: - The first process

    /// Starts the process that serves, and waits for its end or until it is to end itself; ends with an exit status of
    /// sysexits.h.
    private static func standGuard() -> Never {
        prepare()
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGTERM, SIGINT, SIGHUP, SIGCHLD] { sigaddset(&signals, number) }
        sigprocmask(SIG_BLOCK, &signals, nil)
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else {
            pause()
            end("making a pipe: \(SystemError.text(errno))", EX_OSERR)
        }
        _ = fcntl(ends[1], F_SETFD, FD_CLOEXEC)
        let child: pid_t
        do throws(SystemError) {
            child = try startServing(ends[0])
        } catch {
            pause()
            end("\(error)", EX_OSERR)
        }
        close(ends[0])
        close(RelayStart.listener)
        while true {
            var number: CInt = 0
            sigwait(&signals, &number)
            // The pipe's end tells the child, which goes on with the flows that it has.
            guard number == SIGCHLD else { exit(EXIT_SUCCESS) }
            var status: CInt = 0
            guard waitpid(child, &status, WNOHANG) == child else { continue }
            if status != 0 { pause() }
            exit(Spawn.exitStatus(status))
        }
    }

    /// Whoever waits in the socket's queue has the program started at once again, and the service manager gives a
    /// socket up that is triggered twenty times in two seconds.
    private static func pause() { sleep(1) }

    private static func prepare() {
        ProcessMemory.forbidDumps()
        signal(SIGPIPE, SIG_IGN)
        guard RelayStart.listener.socketOption(SO_TYPE) == CInt(SOCK_SEQPACKET.rawValue) else {
            end("it is started by dialtone-tls.socket, or by dialtoned, with a socket", EX_USAGE)
        }
    }

    /// Of a program that was replaced while it runs, this file still.
    private static func startServing(_ pipe: CInt) throws(SystemError) -> pid_t {
        try Spawn.start(
            "starting the process that serves", "/proc/self/exe", ["dialtone-tls", RelayStart.serving, guarded],
            descriptors: [(guarding, .descriptor(pipe))])
    }

    // MARK: - The process that serves

    /// Serves until there has been no flow for a while, and ends the process. To be called by `main`, before it starts
    /// a thread.
    private static func serve(isGuarded: Bool) -> Never {
        prepare()
        // Its file was started as /proc/self/exe, and ps(1) would show that.
        pthread_setname_np(pthread_self(), "dialtone-tls")
        DescriptorLimit.raise()
        do throws(SystemError) {
            let server = try RelayServer(workers: sysconf(CInt(_SC_NPROCESSORS_ONLN)))
            // Reads OpenSSL's configuration, which is a file.
            TLSContexts.prepare()
            restrict()
            server.serve(OwnedDescriptor(RelayStart.listener), guardedBy: isGuarded ? guarding : -1)
        } catch {
            end("\(error)", EX_OSERR)
        }
        exit(EXIT_SUCCESS)
    }

    /// A kernel without seccomp(2), and a sandbox around this one that refuses it, are no reason to do no TLS.
    private static func restrict() {
        do throws(SystemError) {
            try Sandbox.enter()
        } catch {
            writeLine(
                "dialtone-tls: it can ask all of the kernel that its surroundings let it: \(error)", to: STDERR_FILENO)
        }
    }

    private static func end(_ text: String, _ status: CInt) -> Never {
        writeLine("dialtone-tls: \(text)", to: STDERR_FILENO)
        exit(status)
    }
}
