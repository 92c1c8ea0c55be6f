// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Glibc
internal import Reachability

struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say whether there is a route to a host, and with --probe whether it answers.",
        discussion: """
            Asks the kernel for the route that packets of this user would take; sends none, and needs no agent. A name \
            is resolved first.

            With --probe the server itself is asked, at each address of its name.

            With --explain the answer is followed by what it rests on: the name's addresses, the policy rule, the \
            route, the interface, the gateway, the source address. Where the host cannot be reached, the line that \
            decided is marked.

            With --without the answer is what it would be if an interface were removed, with its addresses, its routes \
            and the interfaces that stand on it. --explain and --without go together.

            Exit status: 0 there is a route or, with --probe, an address answered; 1 not; 64 bad usage; 69 the kernel \
            cannot be asked; 77 this user may not ask so.
            """)

    @Argument(help: "\(TargetArgument.forms).", transform: TargetArgument.parse)
    var target: TargetArgument

    @Flag(help: "Say what the answer rests on, and which of that decided.")
    var explain = false

    @Option(
        help: ArgumentHelp("Answer as if this interface were gone.", valueName: "interface"), completion: .interfaces)
    var without: String?

    @OptionGroup
    var probing: ProbeOption

    @Option(
        help: ArgumentHelp(
            "With --probe, how long an address has to answer: up to 5m; by default 10s.", valueName: "duration"))
    var timeout: DurationArgument?

    @OptionGroup(title: "The packets that are asked about")
    var packets: PacketOptions

    @Flag(
        help: """
            Write one JSON object: the path; with --explain what the socket's Explain answers; with --probe what came \
            of each address.
            """)
    var json = false

    @OptionGroup
    var color: ColorOption

    func validate() throws {
        try probing.refuse(target)
        if !probing.probe, timeout != nil {
            throw ValidationError("--timeout is for --probe: without it nothing is waited for")
        }
        if timeout?.duration == .zero { throw ValidationError("--timeout 0 leaves no time for an answer") }
        try timeout?.check("--timeout", atMost: Self.longestTimeout)
        if probing.probe, packets.protocol == .udp {
            throw ValidationError("--probe asks by TCP; a program on UDP need not answer anybody")
        }
        if probing.probe, explain || without != nil {
            throw ValidationError("--probe asks the server, --explain and --without the kernel alone")
        }
    }

    func run() async throws {
        let target = packets.applied(to: self.target.target)
        try refuseWrongLink(of: target)
        let host = HostReachability(target)
        if probing.probe { return try await probe(host, target) }
        guard explain || without != nil else {
            let path = NetworkAPI.Path(await host.path())
            return try answer(path, json: path, Output.style.sentence(PathText.check(path, target: self.target.text)))
        }
        let explanation = NetworkAPI.Explain.Reply(try await explanation(of: host))
        let path = explanation.path
        if explain {
            // There is nothing to list where the kernel cannot be asked.
            let screen = ExplanationScreen(explanation, target: self.target.text)
            try answer(path, json: explanation, screen.lines(Output.style))
        } else {
            try answer(
                path, json: path,
                Output.style.sentence(PathText.check(path, target: self.target.text, without: without)))
        }
    }

    /// Longer than the kernel tries to connect by default (tcp_syn_retries in tcp(7)).
    private static let longestTimeout = Duration.seconds(300)

    private func probe(_ host: HostReachability, _ target: Target) async throws {
        let explanation = NetworkAPI.Explain.Reply(try await explanation(of: host))
        guard explanation.path.status != .unknown else {
            let text = PathText.check(explanation.path, target: self.target.text)
            return try answer(explanation.path, json: explanation.path, Output.style.sentence(text))
        }
        let screen = await ProbeOption.ask(
            self.target, target, explanation, limit: timeout?.duration ?? ProbeOption.usualLimit)
        if !screen.isReachable, let refusal = screen.answers.first(where: \.isForbidden)?.failure {
            Output.fail("\(self.target.text) cannot be asked: \(refusal)")
            throw ExitCode(EX_NOPERM)
        }
        if json {
            Output.write(json: screen)
        } else {
            Output.write(screen.lines(Output.style))
        }
        if !screen.isReachable { throw ExitCode(1) }
    }

    /// Ends the command where a packet would have to leave by a link that there is not, or by one that is not named:
    /// connect(2) refuses a link-local address without its link.
    private func refuseWrongLink(of target: Target) throws {
        if let interface = target.interface, if_nametoindex(interface) == 0 {
            var names: [String] = []
            if let list = if_nameindex() {
                var entry = list
                while let name = entry.pointee.if_name {
                    names.append(String(cString: name))
                    entry += 1
                }
                if_freenameindex(list)
            }
            Output.fail("\(ReachabilityError.noSuchInterface(interface, known: names.sorted()))")
            throw ExitCode(EX_USAGE)
        }
        try self.target.requireLink(of: target)
    }

    private func explanation(of host: HostReachability) async throws -> Explanation {
        do throws(ReachabilityError) {
            return try await host.explanation(without: without)
        } catch {
            switch error {
            case .noSuchInterface:
                Output.fail("--without: \(error)")
                throw ExitCode(EX_USAGE)
            case .unknown(let text):
                Output.fail(text)
                throw ExitCode(EX_UNAVAILABLE)
            }
        }
    }

    /// Writes the answer in the form that was asked for, and ends with its status.
    private func answer(_ path: NetworkAPI.Path, json value: some VarlinkWritable, _ lines: [String]) throws {
        if json {
            Output.write(json: value)
        } else {
            Output.write(lines)
        }
        switch path.status {
        case .satisfied: return
        case .unsatisfied, .requiresConnection: throw ExitCode(1)
        case .unknown: throw ExitCode(EX_UNAVAILABLE)
        }
    }
}
