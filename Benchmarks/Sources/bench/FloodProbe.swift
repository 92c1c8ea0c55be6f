// SPDX-License-Identifier: Apache-2.0

internal import CBench
internal import DialtoneLabSupport
internal import DialtonePlatform
internal import Glibc

/// What a subscriber notices of others that behave badly: from the kernel's event to its read, as ``SubscriberProbe``,
/// in the same run without them and with them. Runs in a process and a network namespace of its own.
enum FloodProbe {
    /// What the others do.
    enum Company: String, CaseIterable, Sendable {
        /// There are none.
        case none
        /// One subscribes and never reads; another calls and never reads an answer.
        case deaf
        /// One asks for a path over and over, as fast as it is answered.
        case flood
    }

    struct Figures: Sendable {
        var measurement = Measurement()
        /// Private memory of the daemon in KiB at the end.
        var memory = 0
        /// Answers that the others read in a second.
        var answers = 0
    }

    /// The option by which this program is one.
    static let option = "--flood"

    /// Runs the probe in a process of its own.
    static func runApart(_ daemon: String, in machine: Namespace) async throws -> [Company: Figures] {
        let all: [Company: [Int]] = try await ProbeProcess.run(option, daemon, in: machine, atLeast: 3)
        return all.mapValues { numbers in
            var figures = Figures(memory: numbers[1], answers: numbers[2])
            figures.measurement.missed = numbers[0]
            let samples = numbers.dropFirst(3).map(Int64.init)
            figures.measurement.samples = stride(from: 0, to: samples.count - 1, by: 2).map { index in
                Sample(bare: samples[samples.startIndex + index], difference: samples[samples.startIndex + index + 1])
            }
            return figures
        }
    }

    /// Runs the probe here and prints its figures for ``runApart(_:in:)``.
    static func runHere(_ arguments: [String]) async throws {
        guard let daemon = arguments.first else { throw SystemError("reading the daemon's path", code: EINVAL) }
        let network = try ProbeNetwork.build()
        let files = try AgentFiles()
        let child = try Child(files.command(daemon))
        defer { withExtendedLifetime(child) {} }
        let messages = try SubscriberProbe.subscribe(to: ProbeNetwork.host(1), at: files)
        for company in Company.allCases {
            let floods = try start(company, files.socket)
            let (start, before) = (bench_now(), answers(floods))
            let measurement = try await Rounds(count: 300).measure(against: network.bare, messages) {
                try network.route.change(add: $0.isMultiple(of: 2))
            }
            let answers = Int64(answers(floods) - before) * 1_000_000_000 / (bench_now() - start)
            let memory = try ProcessCost.memory(of: child.processID).privately
            for flood in floods { bench_end_flood(flood) }
            let samples = measurement.samples.flatMap { [$0.bare, $0.difference] }
            let numbers = [Int64(measurement.missed), Int64(memory), answers] + samples
            Output.write(([company.rawValue] + numbers.map(String.init)).joined(separator: " "))
        }
    }

    private static func start(_ company: Company, _ socket: String) throws -> [OpaquePointer] {
        func call(_ method: String, more: Bool = false) -> String {
            let host = ProbeNetwork.host(1)
            return """
                {"method":"org.dialtone.Network.\(method)","parameters":{"target":{"host":"\(host)"}},"more":\(more)}
                """
        }
        let calls: [(text: String, reads: Bool)] =
            switch company {
            case .none: []
            case .deaf: [(call("MonitorPath", more: true), false), (call("GetPath"), false)]
            case .flood: [(call("GetPath"), true)]
            }
        return try calls.map { call in
            guard let flood = bench_start_flood(socket, call.text, call.reads) else {
                throw SystemError.last("starting a flood")
            }
            return flood
        }
    }

    private static func answers(_ floods: [OpaquePointer]) -> Int { floods.reduce(0) { $0 + bench_flood_count($1) } }
}
