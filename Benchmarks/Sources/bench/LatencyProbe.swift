// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// A probe of reaction times that runs in a process and a network namespace of its own, so that nothing but what it
/// measures hears of its events: no other probe, and none of the Lab's own threads.
enum LatencyProbe: Sendable {
    /// Until the library's callbacks for so many hosts were called.
    case callback(hosts: Int)
    /// Until a line of `ip monitor` can be read.
    case ipMonitor
    /// Until a subscriber of the daemon can read the message.
    case subscriber(daemon: String)

    /// The option by which this program is one.
    static let option = "--probe"

    /// Runs the probe in a process of its own.
    func runApart(in machine: Namespace) async throws -> Measurement {
        let output = try await machine.command(
            ["unshare", "--net", "--", LabAgent.program("bench"), Self.option] + arguments)
        var measurement = Measurement()
        for line in output.split(separator: "\n") {
            let fields = line.split(separator: " ")
            if fields.count == 2, let bare = Int64(fields[0]), let difference = Int64(fields[1]) {
                measurement.samples.append(Sample(bare: bare, difference: difference))
            } else if fields.count == 2, fields[0] == "missed", let count = Int(fields[1]) {
                measurement.missed = count
            } else {
                throw LabError.unexpectedOutput(command: "bench \(Self.option)", output: String(line))
            }
        }
        return measurement
    }

    /// Runs the probe here and prints its figures for ``runApart(in:)``.
    static func runHere(_ arguments: [String]) async throws {
        let measurement =
            switch try LatencyProbe(arguments) {
            case .callback(let hosts): try await CallbackProbe.measure(hosts: hosts)
            case .ipMonitor: try await IPMonitorProbe.measure()
            case .subscriber(let daemon): try await SubscriberProbe.measure(daemon)
            }
        for sample in measurement.samples { Output.write("\(sample.bare) \(sample.difference)") }
        Output.write("missed \(measurement.missed)")
    }

    private var arguments: [String] {
        switch self {
        case .callback(let hosts): ["callback", String(hosts)]
        case .ipMonitor: ["ip-monitor"]
        case .subscriber(let daemon): ["subscriber", daemon]
        }
    }

    private init(_ arguments: [String]) throws {
        switch (arguments.first, arguments.dropFirst().first) {
        case ("callback", let hosts?): self = .callback(hosts: Int(hosts) ?? 1)
        case ("ip-monitor", nil): self = .ipMonitor
        case ("subscriber", let daemon?): self = .subscriber(daemon: daemon)
        default: throw SystemError("reading the probe's name", code: EINVAL)
        }
    }
}

/// The network of a latency probe: one link, and a route that comes and goes.
enum ProbeNetwork {
    /// The hosts that are watched: addresses of the network that the route leads to.
    static func host(_ number: Int) -> String { "198.18.\(number / 250).\(number % 250 + 1)" }

    /// Builds it. The bare reader is opened before what is measured: the kernel wakes the latest first, which is the
    /// better place for everything that is compared with it, and the same for all.
    static func build() throws -> (bare: Stamper, route: RouteChanger) {
        for command in [
            "ip link set lo up", "ip link add wan0 type veth peer name far0", "ip link set far0 up",
            "ip link set wan0 up", "ip address add 192.0.2.2/24 dev wan0",
            "ip neighbour add 192.0.2.1 dev wan0 lladdr 02:00:00:00:00:01 nud permanent",
        ] { try Child.run(command) }
        let bare = try Stamper.bareReader()
        // RFC 2544, appendix C.2.2: for measurements.
        let route = bench_route((198, 18, 0, 0), length: 15, via: (192, 0, 2, 1), metric: 0)
        return (bare, try RouteChanger(route))
    }
}
