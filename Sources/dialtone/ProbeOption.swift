// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneConnection
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneServerProbe
internal import DialtoneVarlink
internal import Dispatch
internal import Glibc

/// Whether a command asks the server itself.
struct ProbeOption: ParsableArguments {
    @Flag(
        help: """
            Ask the server: connect by TCP and, for a scheme with TLS, shake hands and verify the certificate, at each \
            address of the name. SRV records are not looked up.
            """)
    var probe = false

    /// As long as a connection's attempt may take by default.
    static let usualLimit = Duration.seconds(10)

    /// Refuses a target that cannot be probed.
    func refuse(_ target: TargetArgument?) throws {
        guard probe else { return }
        guard let target else { throw ValidationError("--probe takes a host to ask") }
        if target.target.port == nil {
            let host = target.text.contains(":") ? "[\(target.text)]" : target.text
            throw ValidationError("--probe takes a port: \(host):PORT, or a URL as in mqtts://HOST")
        }
    }

    /// What came of the addresses that these paths lead to. It waits for the server on a thread of its own.
    ///
    /// - Parameters:
    ///   - target: what was asked for, with all that is said of its packets.
    ///   - limit: how long an address has to answer.
    static func ask(
        _ argument: TargetArgument, _ target: Target, _ explanation: NetworkAPI.Explain.Reply,
        limit: Duration = usualLimit
    ) async -> ProbeScreen {
        let options = SocketOptions(keepalive: nil, userTimeout: limit, mark: target.mark, user: target.user)
        let tls = argument.scheme.flatMap { scheme in
            scheme.needsTLS
                ? TLSRequest(to: target.host, offering: scheme.applicationProtocols, under: TLSPolicy()) : nil
        }
        var requests: [FlowRequest] = []
        var unreached: [ProbeScreen.Answer] = []
        for path in [explanation.path] + (explanation.others ?? []) {
            guard path.status == .satisfied, let port = target.port,
                let address = path.destination.flatMap({ IPAddress($0) })
            else {
                let failure = PathText.obstacle(path, target: argument.text)
                unreached.append(.init(address: path.destination ?? argument.text, failure: failure))
                continue
            }
            requests.append(
                FlowRequest(
                    epoch: UInt64(requests.count), remote: Endpoint(address: address, port: port),
                    source: target.source, interfaceIndex: path.interface?.index,
                    isBoundToInterface: target.interface != nil, options: options, tls: tls))
        }
        let probe = ServerProbe(requests, limit: limit)
        let answers = await withCheckedContinuation { continuation in
            DispatchQueue(label: "probe").async { continuation.resume(returning: probe.answers()) }
        }
        return ProbeScreen(
            answers.map(ProbeScreen.Answer.init) + unreached, target: argument.text, now: .now())
    }
}

extension ProbeScreen.Answer {
    fileprivate init(_ answer: ServerProbe.Answer) {
        self.init(address: "\(answer.endpoint)")
        switch answer.result {
        case .success(let summary):
            milliseconds = answer.duration / .milliseconds(1)
            version = summary?.version.rawValue
            certificateEndsAt = summary?.certificateEnd.map { Timestamp(milliseconds: $0.seconds * 1000) }
        case .failure(let failure):
            self.failure = "\(failure)"
            if case .other(EPERM, _) = failure { isForbidden = true }
        }
    }
}
